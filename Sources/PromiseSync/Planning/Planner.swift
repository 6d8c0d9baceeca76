package import PromiseCore
package import PromiseIndex
import PromiseProvider

/// What is known of one item in the three trees at one moment.
package struct Observation: Hashable, Sendable {
    /// The item's name on this machine.
    package struct Local: Hashable, Sendable {
        /// The provider's name of the folder it is in; nil while that folder itself is not at the
        /// provider.
        package var parent: ItemIdentifier?
        package var name: FileName
        package var kind: NodeKind
        /// Content (or a link's target) was edited here since it was last synced, or it was made
        /// anew in the place of another.
        package var isEdited: Bool
        package var metadata: Metadata

        package init(
            parent: ItemIdentifier?, name: FileName, kind: NodeKind, isEdited: Bool,
            metadata: Metadata
        ) {
            self.parent = parent
            self.name = name
            self.kind = kind
            self.isEdited = isEdited
            self.metadata = metadata
        }
    }

    package var local: Local?
    package var synced: Item?
    /// nil: as synced.
    package var remote: RemoteState?

    package init(local: Local?, synced: Item?, remote: RemoteState?) {
        self.local = local
        self.synced = synced
        self.remote = remote
    }
}

/// The next thing to do about one item. After it is done the item is observed and planned again,
/// until `.nothing`.
package enum Step: Hashable, Sendable {
    case nothing
    /// The trees agree again: store this as synced.
    case settle(Item)
    /// Both sides deleted it: forget it.
    case forget

    // Follow the provider.
    case insertLocal(Item)
    case removeLocal
    case moveLocal(Item)
    case replaceContent(Item)
    case updateMetadata(Item)
    /// Of a folder.
    case takeTime(Item)
    /// Deleted there, edited here: the local item becomes a new one.
    case detach
    /// Edited on both sides: the provider's version keeps the name, the local one moves beside it.
    case keepBoth(Item)

    // Tell the provider.
    case create
    case push(content: Bool, place: Bool, metadata: Bool)
    case deleteRemote(base: Item)
}

/// Decides from the three trees alone; no clock, no queue, no history. The same trees give the same
/// step.
package func plan(_ observation: Observation) -> Step {
    guard let synced = observation.synced else { return planUnsynced(observation) }
    switch (observation.local, observation.remote) {
    case (nil, nil):
        return .deleteRemote(base: synced)
    case (nil, .deleted):
        return .forget
    case (nil, .present(let remote)):
        // Somebody edited or replaced what was deleted here: their work wins over our deletion. A
        // mere move does not.
        return hasNewContent(remote, synced) ? .insertLocal(remote) : .deleteRemote(base: remote)
    case (.some(let local), .deleted):
        // What was made in a folder, or the folder itself, is looked for there.
        return local.isEdited && local.kind != .folder ? .detach : .removeLocal
    case (.some(let local), nil):
        return planPush(local, synced: synced)
    case (.some(let local), .present(let remote)):
        return planBoth(local, synced: synced, remote: remote)
    }
}

private func planUnsynced(_ observation: Observation) -> Step {
    switch (observation.local, observation.remote) {
    case (nil, nil), (nil, .deleted): .forget
    case (nil, .present(let remote)): .insertLocal(remote)
    case (.some, nil), (.some, .deleted): .create
    case (.some, .present(let remote)): .settle(remote)
    }
}

/// What is in a folder is items of their own, whatever version its provider gives it.
private func hasNewContent(_ remote: Item, _ synced: Item) -> Bool {
    remote.kind != .folder && remote.version != synced.version
}

/// Only this side changed.
private func planPush(_ local: Observation.Local, synced: Item) -> Step {
    let place = local.parent != synced.parent || local.name != synced.name
    let metadata = differs(local.metadata, synced.metadata, kind: local.kind)
    if !local.isEdited && !place && !metadata { return .nothing }
    // A folder has no content: the provider is told its metadata, and says whether it is there.
    if local.kind == .folder {
        return .push(content: false, place: place, metadata: metadata || local.isEdited)
    }
    return .push(content: local.isEdited, place: place, metadata: metadata)
}

/// Both sides may have changed, each in content, place and metadata. Content first: it decides
/// about conflicts.
private func planBoth(_ local: Observation.Local, synced: Item, remote: Item) -> Step {
    if hasNewContent(remote, synced) {
        return local.isEdited ? .keepBoth(remote) : .replaceContent(remote)
    }
    // Whoever told the provider first decides, so that every machine ends with the same. Place and
    // metadata are both followed before the item is settled: what settling skipped would look like
    // an edit made here.
    if remote.parent != synced.parent || remote.name != synced.name {
        let followsAlready = local.parent == remote.parent && local.name == remote.name
        if !followsAlready { return .moveLocal(remote) }
    }
    if differs(remote.metadata, synced.metadata, kind: local.kind) {
        let followsAlready = !differs(local.metadata, remote.metadata, kind: local.kind)
        if !followsAlready { return .updateMetadata(remote) }
    }
    // A time that was given to the folder here is told; one that came of its names is not.
    if hasNewTime(remote, than: synced), !local.isEdited,
        local.metadata.modificationTime != remote.metadata.modificationTime
    {
        return .takeTime(remote)
    }
    return .settle(remote)
}

/// Others have given a folder a time, or changed what is in it. A store that knows no times of
/// folders says 0.
package func hasNewTime(_ item: Item, than known: Item) -> Bool {
    item.kind == .folder && item.metadata.modificationTime != known.metadata.modificationTime
        && !item.isGuess && item.metadata.modificationTime != .zero
}

/// A folder's modification time is not compared: every change of its children changes it, on each
/// side at another moment, see `hasNewTime`. A link has no mode of its own.
package func differs(_ left: Metadata, _ right: Metadata, kind: NodeKind) -> Bool {
    if left.owner != right.owner || left.group != right.group { return true }
    if kind != .link && left.mode != right.mode { return true }
    return kind != .folder && left.modificationTime != right.modificationTime
}
