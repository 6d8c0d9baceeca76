import ArgumentParser
import Glibc
import PromiseSystem

struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Run a command, and say for it and its children how mounts are to treat them.",
        usage: "promisefs run [--no-hydrate] [--json] -- <command> ...",
        discussion: """
            With --no-hydrate an open or a read that would have to fetch content fails at once with EDEADLK. It sets \
            PROMISEFS_HYDRATE=no in the command's environment. The exit status is the command's, or 127 when there is no such \
            command.

            Example:
              promisefs run --no-hydrate -- grep -r invoice /mnt
            """)

    /// As shells have them (POSIX, Shell Command Language 2.8.2).
    private enum Status {
        static let cannotRun: Int32 = 126
        static let notFound: Int32 = 127
    }

    @Flag(name: .long, help: "Fetch nothing for the command.")
    var noHydrate = false
    @OptionGroup var output: OutputOptions
    @Argument(parsing: .postTerminator, help: ArgumentHelp("The command and its arguments.", valueName: "command"))
    var command: [String]

    func validate() throws {
        if command.isEmpty { throw ValidationError("say which command to run, after '--'") }
    }

    func run() throws {
        if noHydrate { setenv("PROMISEFS_HYDRATE", "no", 1) }
        let words = command.map { word in withCPath(RawArguments.bytes(of: word)) { strdup($0) } }
        defer { for word in words { free(word) } }
        // The command takes this process's place, so its exit status and its signals are the caller's to see.
        if let program = words[0] { execvp(program, words + [nil]) }
        let code = errno
        throw CommandFailure(
            "'\(command[0])' cannot be run: \(String(cString: strerror(code)))",
            exitStatus: code == ENOENT ? Status.notFound : Status.cannotRun)
    }
}
