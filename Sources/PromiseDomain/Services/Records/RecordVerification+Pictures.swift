import PromiseAccess
import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider

// Pictures of documents, where they are private objects of the provider. All can be made again.

extension RecordVerification {
    func checkPictures(_ objects: any PrivateObjects) async throws(Failure) -> RecordFindings {
        var found = RecordFindings()
        guard let provider, !provider.capabilities.contains(.thumbnails) else { return found }
        do throws(ProviderError) {
            for name in try await objects.list(.pictures).sorted(by: { $0.name < $1.name }) {
                guard let object = try await read(name, objects, &found),
                    let problem = try await problem(with: object, name, provider)
                else { continue }
                try await mend(object, name, problem, by: nil, objects, &found)
            }
        } catch {
            throw error.failure
        }
        return found
    }

    private func problem(
        with object: PrivateObject, _ name: PrivateName, _ provider: any Provider
    ) async throws(ProviderError) -> String? {
        guard let record = PictureRecord.read(object.bytes, as: name.name),
            PictureFile(Array(record.picture)) != nil
        else {
            sendAgain(name)
            return "\(name) at the provider is no picture of a document"
        }
        guard try await isOrphan(record, provider) else { return nil }
        return "\(name) at the provider is the picture of a document that has gone"
    }

    /// What a machine has here is at the provider again when its picture there has gone.
    private func sendAgain(_ name: PrivateName) {
        guard isRepairing else { return }
        for (node, text) in pictures.kept() where PictureShelf.Note(text)?.name == name {
            pictures.noteKept(nil, of: node)
            pictures.markUnsent(node)
        }
    }

    /// What is not known here is asked for.
    private func isOrphan(
        _ record: PictureRecord.Found, _ provider: any Provider
    ) async throws(ProviderError) -> Bool {
        if let identifier = record.identifier {
            let isKnown = try? index.read { transaction throws(Failure) in try transaction.synced(identifier) != nil }
            // A number is not asked for without a place.
            if isKnown != false || identifier.isNumber { return false }
        } else if !provider.capabilities.contains(.placeIdentifiers) {
            // Of a machine that knows the storage in another way.
            return false
        }
        let identifier = record.identifier ?? ItemIdentifier(ItemKey.text(record.path))
        do throws(ProviderError) {
            _ = try await provider.item(for: ItemReference(identifier: identifier, path: record.path))
            return false
        } catch {
            guard error.code == .notFound else { throw error }
            return true
        }
    }
}
