package import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem

/// One thing the provider is being told. Made from an observation, carried out by a task, its
/// outcome stored by the engine.
package struct Operation: Sendable {
    enum Work: Sendable {
        case create(NewItem, in: ItemReference, UploadSource?)
        case modify(ItemReference, ItemChanges, UploadSource?, base: ContentVersion)
        case delete(ItemReference, base: ContentVersion?)
        /// What the provider's content is, and what the local one is, where there is one.
        case compare(Comparison)
    }

    package enum Outcome: Sendable {
        case item(Item)
        case deleted
        /// Digests.
        case compared(remote: String, local: String?)
    }

    var subject: Pending.Subject
    var work: Work
    var kind: PendingKind
    /// nil for a new item.
    var identifier: ItemIdentifier?
    var node: NodeID?
    /// The node's edits that the operation sends.
    var edits: UInt64
    /// The places at the provider that it changes.
    var places: [ItemPlace]
    var byteCount: UInt64
    /// Of what is small a call takes round trips; of what is large it takes as long as the bytes do.
    var isLarge: Bool { byteCount > 1 << 20 }
    /// What the index has of it until it is answered; nil for what leaves nothing to be recognised.
    var sent: SentID?
    /// What is sent is to be known again: by its digest, where the store tells no times.
    var wantsDigest: Bool { source.map { $0.size <= Operation.digestedMax } ?? false }
    /// Reading more again would take longer than sending does on a fast line.
    private static let digestedMax: UInt64 = 64 << 20

    /// It has two places.
    var isMove: Bool { places.count > 1 }
    /// A provider may have sent the content, and then be refused the place.
    var hasTwoSteps: Bool {
        guard case .modify(_, let changes, let source, _) = work else { return false }
        return changes.place != nil && (source != nil || changes.target != nil)
    }

    /// `disk` reads what is compared.
    func run(_ provider: any Provider, _ disk: BlockingPool) async -> Result<Outcome, ProviderError> {
        await withTaskExecutorPreference(provider.executor) { await carryOut(provider, disk) }
    }

    private func carryOut(
        _ provider: any Provider, _ disk: BlockingPool
    ) async -> Result<Outcome, ProviderError> {
        do throws(ProviderError) {
            switch work {
            case .create(let item, let folder, let source):
                return .success(
                    .item(try await provider.create(item, in: folder, contents: source)))
            case .modify(let reference, let changes, let source, let base):
                return .success(
                    .item(
                        try await provider.modify(
                            reference, changes: changes, contents: source, baseVersion: base)))
            case .delete(let reference, let base):
                try await provider.delete(reference, baseVersion: base)
                return .success(.deleted)
            case .compare(let comparison):
                try await provider.fetchContents(
                    of: comparison.reference, version: comparison.version, range: nil,
                    into: ScratchSink(file: comparison.scratch, size: comparison.size))
                return await disk.run { comparison.outcome() }
            }
        } catch {
            return .failure(error)
        }
    }

    /// The content that is sent; nil when none is.
    var source: UploadSource? {
        switch work {
        case .create(_, _, let source), .modify(_, _, let source, _): source
        case .delete, .compare: nil
        }
    }
}

/// What kind of work is pending, for people.
package enum PendingKind: String, Sendable {
    case upload, create, move, metadata, delete, compare
}

/// What the provider's content is, and what the local one is, where there is one.
struct Comparison: Sendable {
    var reference: ItemReference
    var version: ContentVersion
    /// Of the provider's content.
    var size: UInt64
    var source: UploadSource?
    /// Where the provider's content is put.
    var scratch: SharedDescriptor

    /// When all of it has come. Reads both files.
    func outcome() -> Result<Operation.Outcome, ProviderError> {
        do throws(SystemError) {
            let remote = try ContentDigest.of(descriptor: scratch.number, size: size)
            guard let source else { return .success(.compared(remote: remote, local: nil)) }
            guard let local = source.digest() else {
                return .failure(ProviderError(.sourceChanged, "the file was written to meanwhile"))
            }
            return .success(.compared(remote: remote, local: local))
        } catch {
            return .failure(ProviderError(.permanent, error.description))
        }
    }
}
