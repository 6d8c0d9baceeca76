import PromiseCore
import PromiseIndex
import PromiseProvider

/// One thing the provider is being told. Made from an observation, carried out by a task, its
/// outcome stored by the engine.
struct Operation: Sendable {
    enum Work: Sendable {
        case create(NewItem, in: ItemReference, UploadSource?)
        case modify(ItemReference, ItemChanges, UploadSource?, base: ContentVersion)
        case delete(ItemReference, base: ContentVersion?)
        /// Whether the provider's content equals the local one.
        case compare(ItemReference, ContentVersion, UploadSource)
    }

    enum Outcome: Sendable {
        case item(Item)
        case deleted
        case equal
        case different
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
    /// What the index has of it until it is answered; nil for what leaves nothing to be recognised.
    var sent: SentID?
    /// It has two places.
    var isMove: Bool { places.count > 1 }
    /// A provider may have sent the content, and then be refused the place.
    var hasTwoSteps: Bool {
        guard case .modify(_, let changes, let source, _) = work else { return false }
        return changes.place != nil && (source != nil || changes.target != nil)
    }

    func run(_ provider: any Provider) async -> Result<Outcome, ProviderError> {
        await withTaskExecutorPreference(provider.executor) { await carryOut(provider) }
    }

    private func carryOut(_ provider: any Provider) async -> Result<Outcome, ProviderError> {
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
            case .compare(let reference, let version, let source):
                try await provider.fetchContents(
                    of: reference, version: version, range: nil, into: ComparingSink(source: source)
                )
                try source.validate()
                return .success(.equal)
            }
        } catch {
            if case .compare = work, error.code == .stale,
                error.message == ContentDiffers.error.message
            {
                return .success(.different)
            }
            return .failure(error)
        }
    }
}

/// What kind of work is pending, for people.
package enum PendingKind: String, Sendable {
    case upload, create, move, metadata, delete, compare
}
