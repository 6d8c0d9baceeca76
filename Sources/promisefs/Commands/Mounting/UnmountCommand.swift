import ArgumentParser
import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem
import PromiseWire

struct UnmountCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unmount",
        abstract: "Unmount a domain. Work that is left is kept for the next mount.",
        discussion: """
            Several are unmounted one after the other. Ends with status 7 when work is left pending. With --json it is one \
            object for a single mountpoint or domain, else an array.

            Example:
              promisefs unmount --wait --timeout 1m /mnt
              promisefs unmount documents
              promisefs unmount --all
            """)

    @Argument(help: ArgumentHelp("Where the domain is mounted, or its name.", valueName: "mountpoint|domain"))
    var mountPoints: [PathArgument] = []
    @Flag(name: .long, help: "Unmount every domain of this user; of everybody as root.")
    var all = false
    @Flag(name: [.customShort("w"), .long], help: "First wait until nothing is pending.")
    var wait = false
    @Option(name: .long, help: ArgumentHelp("Wait no longer than this, then unmount; implies --wait.", valueName: "duration"))
    var timeout: TimeSpan?
    @Flag(name: .long, help: "Detach the mount although files are open.")
    var lazy = false
    @OptionGroup var output: OutputOptions

    private static let goneTimeout: Duration = .seconds(5)

    private struct Document: Encodable {
        var domain: String
        var mountPoint: String
        var unmounted: Bool
        /// Missing when the daemon could not be asked.
        var pending: Int?
    }

    func validate() throws {
        if all == !mountPoints.isEmpty { throw ValidationError("name mountpoints or domains, or give --all") }
    }

    func run() async throws {
        Output.goesOnWithoutReader()
        var failures = FailureCollector()
        var documents: [Document] = []
        for path in await UnmountCommand.innerFirst(try await paths()) {
            do {
                documents.append(try await unmount(path, &failures))
            } catch {
                guard let failure = CommandFailure(known: error) else { throw error }
                failures.note(failure)
            }
        }
        if output.json {
            if all || mountPoints.count > 1 { Output.json(documents) } else if let first = documents.first { Output.json(first) }
        } else if all, documents.isEmpty, failures.first == nil {
            Output.line("no domain is mounted")
        }
        try failures.finish()
    }

    private func paths() async throws(PromiseError) -> [PathArgument] {
        guard all else { return mountPoints }
        return try await Targets.mounts().map { PathArgument(bytes: $0.mountPoint) }
    }

    /// A mount that has another one in it is in use for as long. What cannot be found says so in its
    /// turn.
    private static func innerFirst(_ paths: [PathArgument]) async -> [PathArgument] {
        if paths.count < 2 { return paths }
        var places: [[UInt8]?] = []
        for path in paths {
            let location = try? await Targets.location(of: path, namesDomain: true)
            places.append(location?.mount.mountPoint)
        }
        return order(of: places).map { paths[$0] }
    }

    /// The numbers of places so that each comes before those that it is in; otherwise as they are.
    static func order(of places: [[UInt8]?]) -> [Int] {
        var result: [Int] = []
        for (number, place) in places.enumerated() {
            let outer = result.firstIndex { other in
                guard let place, let folder = places[other], place != folder else { return false }
                return place.starts(with: folder == [0x2F] ? folder : folder + [0x2F])
            }
            result.insert(number, at: outer ?? result.endIndex)
        }
        return result
    }

    /// What is left pending is noted as a failure.
    private func unmount(_ path: PathArgument, _ failures: inout FailureCollector) async throws -> Document {
        let location = try await Targets.location(of: path, namesDomain: true)
        let place = escapedForDisplay(location.mount.mountPoint)
        guard location.isMountPoint else {
            throw CommandFailure(
                "nothing is mounted on \(escapedForDisplay(location.absolutePath)); '\(location.domain)' is on \(place)",
                exitStatus: ExitStatus.notPromiseFS)
        }
        let bound = (try? await boundMounts(of: location.mount)) ?? []
        if bound.contains(where: { $0.identifier == location.mount.identifier }) {
            let (isLazy, path) = (lazy, location.mount.mountPoint)
            try await Blocking.run { () throws(CommandFailure) in
                if isLazy { try SystemMounts.detach(path) } else { try SystemMounts.unmount(path) }
            }
            return Document(domain: location.domain, mountPoint: place, unmounted: true, pending: nil)
        }
        if let other = bound.first, !lazy {
            throw CommandFailure(
                "'\(escapedForDisplay(other.mountPoint))' is a bind mount of it: unmount that before, or detach both with --lazy")
        }
        var pending: Int?
        do throws(PromiseError) {
            pending = try await unmountByDaemon(location.mount, patience: .seconds(5))
        } catch {
            guard error.kind == .notAnswering || error.kind == .brokenReply else { throw error }
            try await unmountWithoutDaemon(location.mount, error)
        }
        try await waitUntilGone(location.mount)
        let document = Document(domain: location.domain, mountPoint: place, unmounted: true, pending: pending)
        guard let pending, pending > 0 else { return document }
        let sentence =
            pending == 1
            ? "1 item waits to be uploaded; it is kept and goes on"
            : "\(pending) items wait to be uploaded; they are kept and go on"
        failures.note(CommandFailure("\(sentence) at the next mount", exitStatus: ExitStatus.pending))
        return document
    }

    /// The bind mounts of a domain's mount, or of a part of it: the daemon serves as long as there is one.
    private func boundMounts(of mount: MountEntry) async throws(PromiseError) -> [MountEntry] {
        let mounts = try await Targets.table().entries.filter { $0.isPromiseFS && $0.device == mount.device }
        if mounts.count < 2 { return [] }
        let place = PercentCoding.decode(try await PromiseClient(mount: mount).status().mountPointBytes)
        // A folder above may have another name since: the domain's own is the first.
        let own = mounts.first { $0.mountPoint == place } ?? mounts.first { $0.root == [0x2F] }
        return mounts.filter { $0.identifier != own?.identifier }
    }

    /// A daemon that has too much to do closes connections, and is not dead.
    private func unmountByDaemon(
        _ mount: MountEntry, patience: Duration
    ) async throws(PromiseError) -> Int {
        let deadline = ContinuousClock.now + patience
        while true {
            do throws(PromiseError) {
                return try await unmountByDaemon(mount)
            } catch {
                guard error.kind == .brokenReply, ContinuousClock.now < deadline else { throw error }
            }
            try? await Task.sleep(for: .milliseconds(250))
        }
    }

    private func unmountByDaemon(_ mount: MountEntry) async throws(PromiseError) -> Int {
        let client = try PromiseClient(mount: mount)
        let status = try await client.status()
        let processes = [status.processID, status.holderID].compactMap { $0 }
        let notice = Task { await tellWhoKeeps(mount) }
        defer { notice.cancel() }
        let (waits, timeout, isLazy) = (wait || timeout != nil, timeout?.duration, lazy)
        let reply = try await WaitProgress.showing(of: mount, if: waits && !output.json) { () async throws(PromiseError) in
            try await client.unmount(wait: waits, timeout: timeout, lazy: isLazy)
        }
        // The next mount wants the state folder's lock, so the daemon should be gone too; a lazy one may live on.
        if !lazy { _ = await poll { !processes.contains(where: UnmountCommand.isRunning) } }
        return reply.pending
    }

    /// The mount may be gone here, and still be there in a mount namespace of somebody's.
    private func tellWhoKeeps(_ mount: MountEntry) async {
        while !Task.isCancelled {
            try? await Task.sleep(for: .seconds(3))
            let holder = await Blocking.run { () throws(Never) -> MountNamespaces.Holder? in
                let table = try? MountTable.current()
                guard let table, !table.entries.contains(where: { $0.device == mount.device }) else { return nil }
                return MountNamespaces.holder(ofDevice: mount.device)
            }
            guard let holder, !Task.isCancelled else { continue }
            return Output.note(
                "\(holder.display) has the mount in a mount namespace of its own; this waits until it ends, a minute at most")
        }
    }

    /// The daemon is dead, or has been stopped, or has lost its socket.
    private func unmountWithoutDaemon(_ mount: MountEntry, _ error: PromiseError) async throws(CommandFailure) {
        let path = mount.mountPoint
        let place = escapedForDisplay(path)
        let isLazy = lazy
        let note = try await Blocking.run { () throws(CommandFailure) -> String in
            // It may have gone while its daemon was answering.
            guard let table = try? MountTable.current(), table.entries.contains(where: { $0.identifier == mount.identifier })
            else {
                return ""
            }
            switch SystemMounts.settle(mount) {
            case .dead:
                try SystemMounts.detach(path)
                return
                    "the daemon of '\(mount.domain)' had died; its mount on \(place) is removed; its work goes on at the next"
            case .silent where !isLazy:
                throw CommandFailure("\(error.message); --lazy detaches the mount", exitStatus: ExitStatus.offline)
            case .alive where !isLazy:
                try SystemMounts.unmount(path)
                return "unmounted \(place) without its daemon, which does not answer on its socket"
            case .alive, .silent:
                try SystemMounts.detach(path)
                return "detached \(place) without its daemon, which does not answer"
            }
        }
        if !note.isEmpty && !output.json { Output.line(note) }
    }

    private func waitUntilGone(_ mount: MountEntry) async throws(CommandFailure) {
        let isGone = await poll {
            guard let table = try? MountTable.current() else { return false }
            return !table.entries.contains { $0.identifier == mount.identifier && $0.isPromiseFS }
        }
        guard isGone else {
            let place = escapedForDisplay(mount.mountPoint)
            throw CommandFailure("\(place) is still mounted; files may be open below it, --lazy detaches it")
        }
    }

    private func poll(_ condition: @escaping @Sendable () -> Bool) async -> Bool {
        let start = ContinuousClock.now
        while true {
            if await Blocking.run({ () throws(Never) in condition() }) { return true }
            guard ContinuousClock.now - start < UnmountCommand.goneTimeout else { return false }
            try? await Task.sleep(for: .milliseconds(20))
        }
    }

    /// A zombie has ended, although nobody has taken note of it.
    private static func isRunning(_ process: Int32) -> Bool {
        guard let text = SystemMounts.smallFile("/proc/\(process)/stat"), let end = text.lastIndex(of: ")") else { return false }
        return !text[text.index(after: end)...].trimmed.hasPrefix("Z")
    }
}
