package import PromiseAccess
package import PromiseCore
package import PromiseProvider

extension PictureRecord {
    package init(of reference: ItemReference, _ version: ContentVersion, at provider: any Provider) {
        let identifier = reference.identifier
        let isShared = !provider.capabilities.contains(.placeIdentifiers) || identifier.isNumber
        self.init(identifier: isShared ? identifier : nil, path: reference.path, version: version)
    }
}

// Pictures that machines have saved with their documents.

extension Migration {
    /// As what the new storage calls the documents and their versions. They can be made again, so what is wrong with one of
    /// them keeps nothing where it is.
    func bringPictures(_ paths: [[FileName]: ItemIdentifier]) async throws(ProviderError) {
        guard !old.capabilities.contains(.thumbnails), let objects = old.privateObjects else { return }
        let names = Set(try await objects.list(.pictures))
        if names.isEmpty { return }
        for (path, identifier) in paths {
            guard let item = items[identifier] else { continue }
            let reference = ItemReference(identifier: identifier, path: path)
            let record = PictureRecord(of: reference, item.version, at: old)
            guard let name = PrivateName(.pictures, record.name), names.contains(name) else { continue }
            do throws(ProviderError) {
                guard let picture = try await objects.read(name).flatMap({ record.picture(in: $0.bytes) })
                else { continue }
                try await keep(picture, of: item, at: path)
            } catch {
                if Migration.endsAll(error) { throw error }
            }
        }
    }

    private func keep(
        _ picture: [UInt8], of item: MigratedItem, at path: [FileName]
    ) async throws(ProviderError) {
        let reference = ItemReference(identifier: item.new, path: path)
        if new.capabilities.contains(.thumbnails) {
            return try await new.saveThumbnail(picture, of: reference, version: item.newVersion)
        }
        let record = PictureRecord(of: reference, item.newVersion, at: new)
        guard let there = new.privateObjects, let name = PrivateName(.pictures, record.name) else { return }
        let (found, bytes) = (try await there.read(name), record.bytes(of: picture))
        if found?.bytes == bytes { return }
        _ = try await there.write(bytes, to: name, base: found?.version)
    }
}
