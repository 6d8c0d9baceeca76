import ArgumentParser
import Glibc

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Run a command, and say for it and its children how mounts are to treat them.",
        usage: "promisefs run [--no-hydrate] [--profile FILE] [--json] -- <command> ...",
        discussion: """
            With --no-hydrate an open or a read that would have to fetch content fails at once with EDEADLK. It sets \
            PROMISEFS_HYDRATE=no in the command's environment. With --profile the files that the command and its children open \
            on mounts are noted in FILE, one a line, and the next time those are fetched while it runs. The exit status is the \
            command's, or 127 when there is no such command.

            Example:
              promisefs run --no-hydrate -- grep -r invoice /mnt
              promisefs run --profile ~/.cache/build.profile -- make -C /mnt/project
            """)

    @Flag(name: .long, help: "Fetch nothing for the command.")
    var noHydrate = false
    @Option(name: .long, help: ArgumentHelp("Note what is opened, and fetch what was opened the last time.", valueName: "file"))
    var profile: PathArgument?
    @OptionGroup var output: OutputOptions
    @Argument(parsing: .postTerminator, help: ArgumentHelp("The command and its arguments.", valueName: "command"))
    var command: [String]

    func validate() throws {
        if command.isEmpty { throw ValidationError("say which command to run, after '--'") }
        if profile?.bytes == [UInt8(ascii: "-")] { throw ValidationError("a profile is read and written: name a file") }
        if noHydrate && profile != nil { throw ValidationError("give --no-hydrate or --profile: one fetches nothing") }
    }

    func run() async throws {
        let words = command.map { RawArguments.bytes(of: $0) }
        if let profile {
            let status = try await ProfiledRun(profile: profile.bytes, command: words).run()
            if status != 0 { throw CommandFailure(nil, exitStatus: status) }
            return
        }
        if noHydrate { setenv("PROMISEFS_HYDRATE", "no", 1) }
        throw Spawn.become(words)
    }
}
