import Glibc
import PromiseCore
import PromiseKit
import PromisePicker
import PromiseSystem
import PromiseWire

/// Gives documents to an application that others keep in a sandbox, as the desktop's document portal
/// does: under paths in a view of its own, which follow the documents through renames, moves and
/// saves. The views are in `folder`, one of each domain, for as long as the owner lives.
struct SessionView: PickerGrants {
    private static let patience = Duration.seconds(10)

    let data: MountedData
    let folder: [UInt8]
    let owner: Int32

    func grant(_ item: PickerItem, to application: String) async throws -> PickedDocument {
        let client = try data.client(of: item.domain)
        let view = try await view(of: item.domain, application, client)
        let grant = try await client.give(item.path, to: application, launch: view.launch)
        let name = grant.nameBytes.flatMap { PercentCoding.decode($0[...]) } ?? Array(grant.name.utf8)
        return PickedDocument(path: view.place + Array("/granted/".utf8) + name, grant: grant.id)
    }

    /// The one there is, or a new one.
    private func view(
        of domain: String, _ application: String, _ client: PromiseClient
    ) async throws -> (place: [UInt8], launch: String) {
        let place = folder + [0x2F] + Array(domain.utf8)
        let note = place + Array(".launch".utf8)
        // One at a time: two pickers would mount two.
        let turn = try await Blocking.run { () throws(SystemError) in
            try makeFolders(folder, label: "portal.folder")
            let turn = try Descriptor.open(folder + Array("/turn".utf8), flags: O_RDWR | O_CREAT, label: "portal.turn")
            _ = try call("portal.lock") { flock(turn.number, LOCK_EX) }
            return SharedDescriptor(turn)
        }
        defer { withExtendedLifetime(turn) {} }
        if let launch = await Blocking.run({ SessionView.launch(at: place, notedIn: note) }) {
            return (place, launch)
        }
        let view = try await client.openView(for: application, isForSession: true)
        try await mount(view.handover, at: place)
        try await Blocking.run { () throws(SystemError) in
            let file = try Descriptor.open(
                note, flags: O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600, label: "portal.note")
            try writeFully(file.number, Array(view.launch.utf8), at: 0, label: "portal.write")
        }
        return (place, view.launch)
    }

    /// Nil where none is mounted that works.
    private static func launch(at place: [UInt8], notedIn note: [UInt8]) -> String? {
        guard let table = try? MountTable.current(),
            table.entry(holding: place)?.mountPoint == realPath(place),
            let bytes = readSmallFile(note), !bytes.isEmpty
        else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    /// By a process of its own, which ends the view with the owner.
    private func mount(_ handover: String, at place: [UInt8]) async throws {
        guard let helper = HelperPlace.view() else {
            throw CommandFailure("promisefs-view is missing; it is installed beside promisefs")
        }
        var ends: [CInt] = [0, 0]
        guard pipe(&ends) == 0 else { throw CommandFailure("a pipe cannot be made") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let output = SharedDescriptor(Descriptor(adopting: ends[0]))
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(nothing) }
        _ = withCPath(place) { mkdir($0, 0o700) }
        let words = [helper] + ["--here", handover].map { Array($0.utf8) } + [place, Array("\(owner)".utf8)]
        let started = Spawn.start(
            helper, arguments: words,
            descriptors: [(from: nothing, to: 0), (from: ends[1], to: 1)], newSession: true)
        close(ends[1])
        let isReady = await Blocking.run {
            guard started != nil else { return false }
            var watched = pollfd(fd: output.number, events: Int16(POLLIN), revents: 0)
            let milliseconds = CInt(clamping: SessionView.patience.components.seconds * 1_000)
            var answer: [UInt8] = [0, 0]
            return poll(&watched, 1, milliseconds) > 0 && read(output.number, &answer, 2) == 2
        }
        guard isReady else {
            throw CommandFailure("the application's view cannot be mounted; promisefs-view has said why")
        }
    }
}
