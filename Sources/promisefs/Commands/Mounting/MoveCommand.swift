import ArgumentParser
import PromiseCore
import PromiseSystem

struct MoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move",
        abstract: "Move files into a mount or out of it so that a crash loses none.",
        discussion: """
            Each file is whole on the disk under its new name before the old one goes; folders, links, permissions, times and \
            'user.' attributes go along. Nothing is replaced. When it was cut off, the same command goes on with what is left. \
            With --json it is one object.

            Example:
              promisefs move ~/report.odt ~/photos /mnt/documents
              promisefs move /mnt/documents/report.odt ~
            """)

    @Argument(help: "What to move, and then where to: a folder, or the new path of one thing.")
    var paths: [PathArgument]
    @Flag(name: .long, help: "Leave the sources where they are.")
    var copy = false
    @OptionGroup var output: OutputOptions

    private struct Document: Encodable {
        var files: Int
        var bytes: UInt64
    }

    func validate() throws {
        guard paths.count >= 2 else { throw ValidationError("say what to move, and where to") }
    }

    func run() async throws {
        Output.goesOnWithoutReader()
        let all = paths.map { MoveCommand.plain($0.bytes) }
        let isCopy = copy
        let isFolder = await Blocking.run { MoveCommand.isFolder(all[all.count - 1]) }
        if !isCopy { try await MoveSides.check(Array(all.dropLast()), target: all[all.count - 1], isFolder: isFolder) }
        let done = try await Blocking.run { () throws(CommandFailure) -> FileMover in
            let (sources, target) = (all.dropLast(), all[all.count - 1])
            guard isFolder || sources.count == 1 else {
                throw CommandFailure(
                    "'\(escapedForDisplay(target))' is no folder", exitStatus: ExitStatus.usage)
            }
            var mover = FileMover()
            mover.isCopy = isCopy
            for source in sources {
                let name = source.split(separator: 0x2F).last.map { Array($0) } ?? []
                guard !name.isEmpty, name != [0x2E], name != [0x2E, 0x2E] else {
                    throw CommandFailure(
                        "'\(escapedForDisplay(source))' is nothing to move",
                        exitStatus: ExitStatus.usage)
                }
                try mover.move(source, to: isFolder ? target + [0x2F] + name : target)
            }
            return mover
        }
        if output.json {
            Output.json(Document(files: done.count, bytes: done.byteCount))
        } else if done.count > 0 || done.failures.isEmpty {
            Output.line("\(counted(done.count, "item")) \(copy ? "copied" : "moved")")
        }
        var failures = FailureCollector()
        for failure in done.failures { failures.note(failure) }
        try failures.finish()
    }

    /// `/` at the end would say that a link is to be followed.
    static func plain(_ path: [UInt8]) -> [UInt8] {
        var path = path
        while path.count > 1, path.last == 0x2F { path.removeLast() }
        return path
    }

    /// Also by a link.
    private static func isFolder(_ path: [UInt8]) -> Bool {
        (try? FileStatus.of(path + [0x2F, 0x2E], label: "move.target"))?.kind == .folder
    }
}
