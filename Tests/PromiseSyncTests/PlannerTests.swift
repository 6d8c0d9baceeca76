import PromiseCore
import PromiseIndex
import PromiseSync
import Testing

/// One item as both sides see it, and what they know of each other: small enough to go through every case.
///
/// Contents are words; a version is made from the word, as a provider makes it from the bytes.
private struct World: CustomStringConvertible {
    struct Copy: Hashable {
        var content: String
        var name: String
        var mode: UInt32
    }

    var local: Copy?
    var synced: Copy?
    /// What is at the provider.
    var stored: Copy?
    /// Second versions of conflicts, which are new items from then on.
    var besides: [Copy] = []

    /// What the engine would observe. The provider's item shows in the remote tree only where it differs.
    var observation: Observation {
        Observation(
            local: local.map {
                Observation.Local(
                    parent: ItemIdentifier("root"), name: FileName($0.name)!, kind: .file,
                    isEdited: $0.content != synced?.content, metadata: World.metadata($0.mode))
            },
            synced: synced.map(World.item),
            remote: stored == synced ? nil : stored.map { .present(World.item($0)) } ?? (synced == nil ? nil : .deleted))
    }

    static func metadata(_ mode: UInt32) -> Metadata {
        Metadata(mode: mode, owner: 0, group: 0, modificationTime: .zero)
    }

    static func item(_ copy: Copy) -> Item {
        Item(
            identifier: ItemIdentifier("item"), parent: ItemIdentifier("root"), name: FileName(copy.name)!, kind: .file, size: 1,
            metadata: metadata(copy.mode), version: ContentVersion(copy.content))
    }

    static func copy(_ item: Item) -> Copy {
        Copy(content: item.version.rawValue, name: item.name.display, mode: item.metadata.mode)
    }

    /// Every content that somebody could miss.
    var contents: Set<String> { Set(([local, stored].compactMap { $0 } + besides).map(\.content)) }

    var description: String { "local \(shown(local)), synced \(shown(synced)), stored \(shown(stored)), besides \(besides)" }

    private func shown(_ copy: Copy?) -> String { copy.map { "\($0.content)/\($0.name)/\($0.mode)" } ?? "-" }

    /// Carries a step out as the engine does: each changes only what its name says.
    mutating func apply(_ step: Step) {
        switch step {
        case .nothing: break
        case .settle(let item): synced = World.copy(item)
        case .forget: synced = nil
        case .insertLocal(let item): (local, synced) = (World.copy(item), World.copy(item))
        case .removeLocal: (local, synced) = (nil, nil)
        case .moveLocal(let item):
            local?.name = item.name.display
            synced?.name = item.name.display
        case .replaceContent(let item):
            local?.content = item.version.rawValue
            local?.mode = item.metadata.mode
            synced?.content = item.version.rawValue
            synced?.mode = item.metadata.mode
        case .updateMetadata(let item), .takeTime(let item):
            local?.mode = item.metadata.mode
            synced = World.copy(item)
        case .detach:
            besides.append(local!)
            (local, synced) = (nil, nil)
        case .keepBoth(let item):
            besides.append(local!)
            local?.content = item.version.rawValue
            local?.mode = item.metadata.mode
            synced?.content = item.version.rawValue
            synced?.mode = item.metadata.mode
        case .create: (stored, synced) = (local, local)
        case .push(let content, let place, let metadata):
            if content { stored?.content = local!.content }
            if place { stored?.name = local!.name }
            if metadata { stored?.mode = local!.mode }
            synced = stored
        case .deleteRemote: (stored, synced) = (nil, nil)
        }
    }
}

@Suite struct PlannerTests {
    private typealias Copy = World.Copy
    private static let base = Copy(content: "base", name: "name", mode: 0o644)

    /// Every combination of content, name and mode as before or changed by one side.
    private static func variants(_ content: String, _ name: String, _ mode: UInt32) -> [Copy] {
        ["base", content].flatMap { content in
            ["name", name].flatMap { name in [0o644, mode].map { Copy(content: content, name: name, mode: $0) } }
        }
    }

    /// Both sides may also have made the same change.
    private static let worlds: [World] = {
        let locals: [Copy?] = [nil] + variants("ours", "our name", 0o600)
        let stored: [Copy?] = [nil] + variants("theirs", "their name", 0o755) + variants("theirs", "our name", 0o600)
        let known = locals.flatMap { local in stored.map { World(local: local, synced: base, stored: $0) } }
        let unknown = [nil, base].flatMap { local in [nil, base].map { World(local: local, synced: nil, stored: $0) } }
        return known + unknown
    }()

    @Test func spaceIsAsLargeAsMeant() { #expect(Self.worlds.count == 9 * 17 + 4) }

    @Test func everyCaseSettlesWithinSixStepsAndLosesNoContent() {
        for start in Self.worlds {
            var world = start
            var steps: [Step] = []
            while steps.count < 6 {
                let step = plan(world.observation)
                let isGone = world.local == nil && world.stored == nil && world.synced == nil
                if step == .nothing || step == .forget && isGone { break }
                steps.append(step)
                let edits = world.local.flatMap { $0.content != world.synced?.content ? $0.content : nil }
                let remoteEdit = world.stored.flatMap { $0.content != world.synced?.content ? $0.content : nil }
                world.apply(step)
                if let edits { #expect(world.contents.contains(edits), "\(start): \(step) lost what was edited here") }
                if let remoteEdit { #expect(world.contents.contains(remoteEdit), "\(start): \(step) lost what was edited there") }
            }
            #expect(world.local == world.stored && world.local == world.synced, "\(start) ended as \(world) after \(steps)")
        }
    }

    @Test func changesOfBothSidesThatDoNotMeetAreBothKept() {
        for start in Self.worlds {
            guard let local = start.local, let synced = start.synced, let stored = start.stored else { continue }
            var world = start
            for _ in 0..<6 { world.apply(plan(world.observation)) }
            let end = world.stored
            // One changed side wins; where both changed, the provider's name and mode do.
            let name = stored.name != synced.name ? stored.name : local.name
            #expect(end?.name == name, "\(start) ended as \(world)")
            if stored.content == synced.content || local.content == synced.content {
                #expect(end?.content == (stored.content != synced.content ? stored.content : local.content), "\(start)")
                #expect(world.besides.isEmpty, "\(start) ended as \(world)")
            } else {
                #expect(end?.content == stored.content && world.besides.map(\.content) == [local.content], "\(start)")
            }
            if stored.content == synced.content {
                #expect(end?.mode == (stored.mode != synced.mode ? stored.mode : local.mode), "\(start) ended as \(world)")
            } else {
                // New content comes with its own mode.
                #expect(end?.mode == stored.mode, "\(start) ended as \(world)")
            }
        }
    }

    @Test func editedLocalItemIsNeverRemovedOrReplaced() {
        for world in Self.worlds {
            guard let local = world.local, local.content != world.synced?.content else { continue }
            switch plan(world.observation) {
            case .removeLocal, .replaceContent, .insertLocal, .deleteRemote, .forget: Issue.record("\(world)")
            default: break
            }
        }
    }

    @Test func remoteEditIsNeverDeletedNorOverwritten() {
        for world in Self.worlds {
            guard let stored = world.stored, let synced = world.synced, stored.content != synced.content else { continue }
            switch plan(world.observation) {
            case .deleteRemote, .push, .create, .forget, .settle: Issue.record("\(world)")
            default: break
            }
        }
    }

    @Test func settledTreesNeedNothing() {
        for copy in Self.variants("ours", "our name", 0o600) {
            #expect(plan(World(local: copy, synced: copy, stored: copy).observation) == .nothing)
        }
        #expect(plan(Observation(local: nil, synced: nil, remote: nil)) == .forget)
    }

    @Test func deletionFollowsAMoveOfTheOtherSide() {
        let moved = Copy(content: "base", name: "their name", mode: 0o644)
        #expect(
            plan(World(local: nil, synced: Self.base, stored: moved).observation) == .deleteRemote(base: World.item(moved)))
    }

    @Test func newItemIsCreatedWhateverWasThere() {
        for remote in [nil, RemoteState.deleted] {
            let local = Observation.Local(
                parent: nil, name: FileName("new")!, kind: .file, isEdited: true, metadata: World.metadata(0o644))
            #expect(plan(Observation(local: local, synced: nil, remote: remote)) == .create)
        }
    }

    /// One with files in it was replaced here, which ended the daemon.
    @Test func aFolderOfAnotherVersionIsTheSameFolder() {
        var item = World.item(.init(content: "one", name: "d", mode: 0o755))
        item.kind = .folder
        var other = item
        other.version = ContentVersion("two")
        let local = Observation.Local(
            parent: item.parent, name: item.name, kind: .folder, isEdited: false, metadata: item.metadata)
        #expect(plan(Observation(local: local, synced: item, remote: .present(other))) == .settle(other))
        #expect(plan(Observation(local: nil, synced: item, remote: .present(other))) == .deleteRemote(base: other))
    }

    /// One that others had given to a folder was never followed.
    @Test func aFoldersTimeIsFollowedUnlessOneWasGivenHere() {
        var item = World.item(.init(content: "folder", name: "d", mode: 0o755))
        item.kind = .folder
        item.metadata.modificationTime = Timestamp(nanoseconds: 5)
        var other = item
        other.metadata.modificationTime = Timestamp(nanoseconds: 9)
        // Names came and went here since.
        var here = item.metadata
        here.modificationTime = Timestamp(nanoseconds: 7)
        func observation(isEdited: Bool, _ remote: Item) -> Observation {
            let local = Observation.Local(
                parent: item.parent, name: item.name, kind: .folder, isEdited: isEdited, metadata: here)
            return Observation(local: local, synced: item, remote: .present(remote))
        }
        #expect(plan(observation(isEdited: false, other)) == .takeTime(other))
        #expect(plan(observation(isEdited: true, other)) == .settle(other))
        here = other.metadata
        #expect(plan(observation(isEdited: false, other)) == .settle(other))
        // Nobody knows it, or it is a guess.
        here = item.metadata
        var unknown = other
        unknown.metadata.modificationTime = .zero
        #expect(plan(observation(isEdited: false, unknown)) == .settle(unknown))
        unknown = other
        unknown.isGuess = true
        #expect(plan(observation(isEdited: false, unknown)) == .settle(unknown))
    }

    @Test func foldersAndLinksIgnoreWhatTheyDoNotHave() {
        let left = Metadata(mode: 0o755, owner: 1, group: 1, modificationTime: .zero)
        var right = left
        right.modificationTime = Timestamp(nanoseconds: 1)
        #expect(differs(left, right, kind: .file) && differs(left, right, kind: .link) && !differs(left, right, kind: .folder))
        right = left
        right.mode = 0o777
        #expect(differs(left, right, kind: .file) && !differs(left, right, kind: .link) && differs(left, right, kind: .folder))
        right = left
        right.owner = 2
        for kind in [NodeKind.file, .folder, .link] { #expect(differs(left, right, kind: kind)) }
    }
}

@Suite struct BackoffTests {
    @Test(arguments: [(1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 32), (7, 60), (8, 60), (1_000_000, 60)] as [(Int, Int64)])
    func delayDoublesUpToTheLongest(attempts: Int, seconds: Int64) {
        #expect(Backoff().delay(after: attempts) == .seconds(seconds))
    }

    @Test func firstAndLongestAreHonoured() {
        let backoff = Backoff(first: .milliseconds(200), longest: .seconds(5))
        #expect((1...7).map { backoff.delay(after: $0) } == [200, 400, 800, 1600, 3200, 5000, 5000].map { .milliseconds($0) })
    }

    @Test func noAttemptHasNoDelay() async {
        await #expect(processExitsWith: .failure) { _ = Backoff().delay(after: 0) }
    }
}
