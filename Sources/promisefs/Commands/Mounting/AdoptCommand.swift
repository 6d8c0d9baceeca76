import ArgumentParser
import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem
import PromiseWire

struct AdoptCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "adopt",
        abstract: "Make an existing folder a domain, or give a mounted domain what a folder has of it.",
        discussion: """
            Where nothing is mounted on MOUNTPOINT, DIR becomes a domain as it is: nothing is copied or uploaded. Where a \
            domain is, files of DIR that are the same there by size and time become its content on this machine without \
            being fetched or uploaded, and what only DIR has is copied into it. DIR stays as it is. Ends with status 6 when \
            files differ; they are named, and neither is touched. With --json it is one object.

            Example:
              promisefs adopt ~/Documents /mnt/documents
              promisefs mount webdav+https://ann@example.com/files /mnt/files; promisefs adopt ~/old-files /mnt/files
            """)

    @Argument(help: "The folder that is there.") var folder: PathArgument
    @Argument(help: "Where the domain is mounted, or is to be.") var mountPoint: PathArgument
    @Option(name: .long, help: "The name of the new domain.") var domain: String?
    @OptionGroup var output: OutputOptions

    private struct Document: Encodable {
        var domain: String
        var mountPoint: String
        /// The folder is the domain's storage now.
        var isStorage: Bool
        /// Files whose content is here now without having been fetched.
        var taken = 0
        var bytesTaken: UInt64 = 0
        var alreadyHere = 0
        /// Items that only the folder had.
        var added = 0
        /// Paths, with what is not plain ASCII percent-encoded, of what is not the same.
        var different: [String] = []
        var failures: [ItemFailureDocument] = []
    }

    func run() async throws {
        Output.goesOnWithoutReader()
        let source = try absolute(folder)
        let place = MoveCommand.plain(mountPoint.bytes)
        if let location = try? await Targets.location(of: PathArgument(bytes: place)) {
            if domain.map({ $0 != location.mount.domain }) ?? false {
                throw CommandFailure(
                    "the domain there is '\(location.mount.domain)'", exitStatus: ExitStatus.usage)
            }
            return try await give(source, to: location)
        }
        guard let name = String(validating: source, as: UTF8.self),
            let point = String(validating: place, as: UTF8.self)
        else {
            throw CommandFailure("the path of a new domain's folder is to be UTF-8")
        }
        let arguments = domain.map { ["--domain", $0] } ?? []
        var command = try MountCommand.parse(arguments + ["folder:" + name, point])
        command.output.json = output.json
        try await command.run()
    }

    private func absolute(_ path: PathArgument) throws -> [UInt8] {
        do throws(SystemError) {
            let descriptor = try Descriptor.open(
                path.bytes, flags: O_RDONLY | O_DIRECTORY, label: "adopt.open")
            return try readLink(descriptorPath(descriptor.number), label: "adopt.path")
        } catch {
            throw CommandFailure("'\(escapedForDisplay(path.bytes))' cannot be read: \(error.reason)")
        }
    }

    private func give(_ source: [UInt8], to location: Location) async throws {
        let origin = try? await Targets.location(of: PathArgument(bytes: source))
        if let origin, origin.mount.mountPoint == location.mount.mountPoint {
            throw CommandFailure(
                "'\(escapedForDisplay(source))' is in the domain already", exitStatus: ExitStatus.usage)
        }
        var document = Document(
            domain: location.mount.domain, mountPoint: escapedForDisplay(location.mount.mountPoint),
            isStorage: false)
        let client = try PromiseClient(mount: location.mount)
        if try await isStorage(source, of: client), location.path.isEmpty {
            document.isStorage = true
            return try report(document)
        }
        // A domain's name stands for its mount, and as a path for a folder beside whoever asks.
        let top = location.absolutePath
        let found = try await Blocking.run { () throws(CommandFailure) -> FolderComparison in
            var comparison = FolderComparison(source: source, target: top)
            try comparison.run()
            return comparison
        }
        document.added = found.added
        try await take(found.same, of: source, client, location, &document)
        // Listings of large folders on S3 tell true times only a moment later.
        var (doubtful, rounds) = (found.doubtful, 0)
        while !doubtful.isEmpty, rounds < AdoptCommand.doubtRoundsMax {
            try await Task.sleep(for: AdoptCommand.doubtTime)
            let files = doubtful
            let same = Set(try await Blocking.run { () throws(PromiseError) in files.filter { found.isSame($0) } })
            rounds = same.isEmpty ? rounds + 1 : 0
            try await take(files.filter { same.contains($0) }, of: source, client, location, &document)
            doubtful.removeAll { same.contains($0) }
        }
        let left = Set(doubtful)
        var failures = FailureCollector()
        for failure in found.failures { failures.note(failure) }
        document.different = (found.different + found.doubtful.filter { left.contains($0) }).map { PercentCoding.encode($0) }
        try report(document)
        try failures.finish()
    }

    /// The domain has all of it, and contents are fetched when somebody wants them.
    private func isStorage(_ folder: [UInt8], of client: PromiseClient) async throws -> Bool {
        let scheme = "folder:"
        let provider = try await client.status().provider
        guard provider.hasPrefix(scheme) else { return false }
        let storage = PathArgument(bytes: Array(provider.utf8.dropFirst(scheme.utf8.count)))
        return (try? absolute(storage)) == folder
    }

    /// So often it is looked again, while nothing comes of it, at files of one size and another time.
    private static let doubtRoundsMax = 16
    private static let doubtTime = Duration.milliseconds(500)

    private func take(
        _ files: [[UInt8]], of source: [UInt8], _ client: PromiseClient, _ location: Location, _ document: inout Document
    ) async throws {
        var start = 0
        while start < files.count {
            let part = files[start..<min(start + 500, files.count)]
            let reply = try await client.adopt(part.map { Array($0) }, of: source, below: location.path)
            document.taken += reply.taken
            document.bytesTaken += reply.bytesTaken
            document.alreadyHere += reply.alreadyHere
            document.failures += reply.failures
            start = part.endIndex
        }
    }

    private func report(_ document: Document) throws {
        if output.json {
            Output.json(document)
        } else if document.isStorage {
            Output.line("the folder is the storage of '\(document.domain)' already")
        } else {
            Output.line(
                "\(counted(document.taken, "file")) taken, \(ByteSize.text(document.bytesTaken)) not fetched; "
                    + "\(document.alreadyHere) here already, \(document.added) added")
        }
        let total = document.different.count
        if let first = document.different.first {
            throw CommandFailure(
                "\(counted(total, "item")) not the same in both, and left alone: '\(first)'\(total > 1 ? " and others" : "")",
                exitStatus: ExitStatus.conflict)
        }
        if let first = document.failures.first {
            throw CommandFailure("\(first.path): \(first.detail)", exitStatus: first.exitStatus)
        }
    }
}

/// What a folder has and a mount has of it. Blocks.
struct FolderComparison {
    private static let reserved = Array(".promisefs".utf8)

    let source: [UInt8]
    let target: [UInt8]
    /// Below the folder: files of one size and time.
    private(set) var same: [[UInt8]] = []
    private(set) var different: [[UInt8]] = []
    /// Files of one size and another time.
    private(set) var doubtful: [[UInt8]] = []
    private(set) var added = 0
    /// Why other items were not looked at, or not copied.
    private(set) var failures: [CommandFailure] = []
    private var top: FileStatus?

    init(source: [UInt8], target: [UInt8]) {
        (self.source, self.target) = (source, target)
    }

    mutating func run() throws(CommandFailure) {
        top = try? FileStatus.of(target, label: "adopt.target")
        try compare([])
    }

    private mutating func compare(_ folder: [UInt8]) throws(CommandFailure) {
        let names: [[UInt8]]
        do throws(CommandFailure) {
            names = try self.names(in: source + folder)
        } catch {
            if folder.isEmpty { throw error }
            return failures.append(error)
        }
        for name in names {
            // What a storage keeps for itself, where the folder was one: it is of no other.
            if folder.isEmpty, name == FolderComparison.reserved { continue }
            let path = folder + [0x2F] + name
            let (here, there) = (source + path, target + path)
            // The domain itself may be mounted in the folder.
            if here == target { continue }
            let one, two: FileStatus?
            do throws(CommandFailure) {
                one = try look(at: here)
                two = try look(at: there)
            } catch {
                failures.append(error)
                continue
            }
            guard let one, !(top.map { MoveCheck.isSame($0, one) } ?? false) else { continue }
            guard let two else {
                try add(here, at: there)
                continue
            }
            switch (one.kind, two.kind) {
            // What was put into the other one would be sent.
            case (.folder, .folder) where stays(here) && !stays(there):
                different.append(Array(path.dropFirst()))
            case (.folder, .folder): try compare(path)
            case (.file, .file) where one.size == two.size && isSameTime(one, two):
                same.append(Array(path.dropFirst()))
            case (.file, .file) where one.size == two.size: doubtful.append(Array(path.dropFirst()))
            case (.link, .link) where isSameLink(here, there): break
            default: different.append(Array(path.dropFirst()))
            }
        }
    }

    /// Whether a folder has the mark by which it stays on its machine.
    private func stays(_ folder: [UInt8]) -> Bool {
        guard let folder = try? Descriptor.open(folder, flags: O_RDONLY | O_DIRECTORY, label: "adopt.folder"),
            let mark = try? attribute("user.promisefs.excluded", of: [0x2E], in: folder.number, label: "adopt.mark")
        else { return false }
        return !mark.isEmpty
    }

    /// Whether a file of these is of one size and time by now.
    func isSame(_ path: [UInt8]) -> Bool {
        guard let one = try? FileStatus.of(source + [0x2F] + path, label: "adopt.lookAgain"),
            let two = try? FileStatus.of(target + [0x2F] + path, label: "adopt.lookAgainThere")
        else { return false }
        return one.kind == .file && two.kind == .file && one.size == two.size && isSameTime(one, two)
    }

    /// Not every store keeps parts of a second.
    private func isSameTime(_ one: FileStatus, _ two: FileStatus) -> Bool {
        one.modificationTime.isSame(as: two.modificationTime)
    }

    private func isSameLink(_ one: [UInt8], _ two: [UInt8]) -> Bool {
        let text = try? readLink(one, label: "adopt.readlink")
        return text != nil && text == (try? readLink(two, label: "adopt.readlink"))
    }

    /// Nil where nothing is.
    private func look(at path: [UInt8]) throws(CommandFailure) -> FileStatus? {
        do throws(SystemError) {
            return try FileStatus.of(path, label: "adopt.look")
        } catch {
            if error.errno == ENOENT { return nil }
            throw CommandFailure("'\(escapedForDisplay(path))' cannot be looked at: \(error.reason)")
        }
    }

    private mutating func add(_ path: [UInt8], at place: [UInt8]) throws(CommandFailure) {
        var mover = FileMover()
        mover.isCopy = true
        try mover.move(path, to: place)
        failures += mover.failures
        added += mover.failures.isEmpty ? max(mover.count, 1) : mover.count
    }

    private func names(in folder: [UInt8]) throws(CommandFailure) -> [[UInt8]] {
        do throws(SystemError) {
            let descriptor = try Descriptor.open(
                folder, flags: O_RDONLY | O_DIRECTORY, label: "adopt.opendir")
            return try listFolder(descriptor, label: "adopt.list").map(\.name)
        } catch {
            throw CommandFailure("'\(escapedForDisplay(folder))' cannot be listed: \(error.reason)")
        }
    }
}
