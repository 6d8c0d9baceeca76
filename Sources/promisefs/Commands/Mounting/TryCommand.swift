import ArgumentParser
import Foundation
import Glibc
import PromiseCore
import PromiseKit

struct TryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "try",
        abstract: "Run a command with a mount of its own, which is gone afterwards: for tests of other programs.",
        discussion: """
            The command finds the mount at $PROMISEFS_MOUNT and the folder that plays the provider at $PROMISEFS_CLOUD. What it \
            writes to $PROMISEFS_FAULTS the provider suffers from then on, lines as delay=2s, offline=true, fail=3; \
            --fault gives the first ones. The exit status is the command's.

            Example:
              promisefs try -- sh -c 'cat "$PROMISEFS_MOUNT/Welcome.md"'
              promisefs try --content testdata --fault slow.faults -- make check
            """)

    @Option(name: .long, help: ArgumentHelp("What the provider suffers from when the command begins.", valueName: "file"))
    var fault: PathArgument?
    @Option(name: .long, help: ArgumentHelp("The content: a copy of this folder. (default: a few samples)", valueName: "dir"))
    var content: PathArgument?
    /// Of PromiseKit and the Python package: the folder of a mount, which goes when stdin ends.
    @Option(name: .long, help: .hidden) var forget: PathArgument?
    @OptionGroup var output: OutputOptions
    @Argument(parsing: .postTerminator, help: ArgumentHelp("The command and its arguments.", valueName: "command"))
    var command: [String]

    func validate() throws {
        if command.isEmpty { throw ValidationError("say which command to run, after '--'") }
    }

    private struct Document: Encodable {
        var mountPoint: String
        var cloud: String
        var faults: String
        var status: Int32
    }

    func run() async throws {
        guard let own = HelperPlace.ownPath.map({ String(decoding: $0, as: UTF8.self) }) else {
            throw CommandFailure("the place of this program cannot be found; mount /proc")
        }
        if let forget {
            // No folder of somebody else is kept in use meanwhile.
            let folder = try text(forget, "--forget")
            await Blocking.run {
                _ = chdir("/")
                var byte: UInt8 = 0
                while true {
                    let count = read(STDIN_FILENO, &byte, 1)
                    if count == 0 || count < 0 && errno != EINTR { return }
                }
            }
            return await TemporaryMount.clear(folder, executable: own)
        }
        let words = command.map { RawArguments.bytes(of: $0) }
        let folder = try content.map { folder throws(CommandFailure) in try text(folder, "--content") }
        var faults: [String] = []
        if let fault {
            let path = try text(fault, "--fault")
            guard let lines = SystemMounts.smallFile(path) else { throw CommandFailure("the file \(path) cannot be read") }
            if let problem = ProviderFaults.problem(in: lines) {
                throw CommandFailure("\(path): \(problem)", exitStatus: ExitStatus.usage)
            }
            faults = lines.split(whereSeparator: \.isNewline).map(String.init)
        }
        let status: Int32
        do {
            status = try await TemporaryMount.with(copying: folder, executable: own) { mount in
                if !faults.isEmpty { try mount.setFaults(faults) }
                for (name, value) in mount.environment { setenv(name, value, 1) }
                let status = try await Blocking.run { () throws(CommandFailure) in try Spawn.runTied(words) { _ in } }
                if output.json {
                    Output.json(
                        Document(
                            mountPoint: mount.mountPoint, cloud: mount.cloud, faults: mount.faultFile, status: status))
                }
                return status
            }
        } catch {
            let sentence = "the content cannot be copied; see that the folder is there and may be read"
            throw CommandFailure(known: error) ?? CommandFailure(sentence)
        }
        if status != 0 { throw CommandFailure(nil, exitStatus: status) }
    }

    private func text(_ path: PathArgument, _ option: String) throws(CommandFailure) -> String {
        guard let text = String(validating: path.bytes, as: UTF8.self) else {
            throw CommandFailure("the path of \(option) is not UTF-8", exitStatus: ExitStatus.usage)
        }
        return text
    }
}
