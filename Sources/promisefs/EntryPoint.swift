import ArgumentParser
import Glibc
import PromiseKit
import PromiseSystem

/// Where the process begins. Not on the main actor: commands and the daemon run on the concurrent pool and on threads of
/// their own.
@main
enum EntryPoint {
    static func main() async {
        StandardStreams.fill()
        let words = RawArguments.ofProcess()
        let arguments = Array(words.dropFirst())
        PromiseClient.waitForSuccessors()
        if MountHelper.isMeant(by: words.first) { exit(await MountHelper.run(arguments)) }
        let status = await PromiseFS.execute(arguments)
        exit(status)
    }
}

/// The root of the command line.
struct PromiseFS: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "promisefs",
        abstract: "Mount a provider's storage as an ordinary folder whose files arrive when they are opened.",
        discussion: """
            'promisefs help topics' lists the documents, 'promisefs help semantics' shows one.

            Exit status: 0 done, 1 failed, 2 usage, 3 not a PromiseFS path, 4 offline or timed out, 5 refused, 6 conflict, \
            7 nothing was lost but work is pending.

            Example:
              promisefs mount folder:/srv/documents /mnt
              promisefs status /mnt
            """,
        version: "promisefs \(programVersion)",
        subcommands: [
            MountCommand.self, UnmountCommand.self, StatusCommand.self, InfoCommand.self, FetchCommand.self, EvictCommand.self,
            PinCommand.self, UnpinCommand.self, PendingCommand.self, SyncCommand.self, PauseCommand.self,
            ResumeCommand.self, LimitCommand.self, VerifyCommand.self, DoctorCommand.self,
            ProviderCommand.self, RestartCommand.self, RunCommand.self, FindCommand.self, ChangesCommand.self,
            CoordinateCommand.self, WatchCommand.self, VersionsCommand.self, ConflictsCommand.self,
            ResolveCommand.self, ThumbnailCommand.self, KeyValueCommand.self, ContainerCommand.self,
            ReferenceCommand.self, BookmarkCommand.self, GrantsCommand.self, TraceCommand.self, EnableCommand.self,
            DisableCommand.self, TryCommand.self, SetupCommand.self, DomainCommand.self,
            PickCommand.self, WebCommand.self, MetricsCommand.self,
            MoveCommand.self, AdoptCommand.self, MigrateCommand.self, RevertCommand.self, LoginCommand.self,
            NotifyCommand.self, ShareCommand.self, TrashCommand.self,
        ])

    /// Parses and runs; says what went wrong on stderr in one sentence and returns the exit status.
    static func execute(_ arguments: [String]) async -> Int32 {
        Output.problemsAreJSON = arguments.prefix { $0 != "--" }.contains("--json")
        if let status = HelpTopics.answer(arguments) { return status }
        if arguments == ["-v"] { return await execute(["--version"]) }
        if arguments.first == "--json" { return await execute(withJSONBehind: Array(arguments.dropFirst())) }
        // The parser shows its help for whatever has --help behind it.
        if let word = arguments.first, !word.hasPrefix("-"), word != "help", !commandNames.contains(word) {
            return report(ValidationError(""), arguments: arguments)
        }
        do {
            var command = try parseAsRoot(separated(arguments))
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            return 0
        } catch {
            return report(error, arguments: arguments)
        }
    }

    /// `promisefs --json COMMAND`: it is the command's option.
    private static func execute(withJSONBehind rest: [String]) async -> Int32 {
        guard !rest.isEmpty, rest.first != "--json" else {
            let failure = CommandFailure("say which command; see 'promisefs --help'", exitStatus: ExitStatus.usage)
            return report(failure, arguments: rest)
        }
        let end = rest.firstIndex(of: "--") ?? rest.endIndex
        return await execute(rest[..<end] + ["--json"] + rest[end...])
    }

    /// What the parser cannot say: `-oOPT=VALUE` in one word, as mount(8) takes it, is two words to it; and what follows `--`
    /// after other operands is a command of its own.
    static func separated(_ arguments: [String]) -> [String] {
        if arguments.first == "coordinate", let end = arguments.firstIndex(of: "--") {
            return arguments[..<end] + ["--command"] + arguments[(end + 1)...]
        }
        guard arguments.first == "mount" else { return arguments }
        let end = arguments.firstIndex(of: "--") ?? arguments.endIndex
        let options = arguments[..<end].flatMap { $0.hasPrefix("-o") && $0.count > 2 ? ["-o", String($0.dropFirst(2))] : [$0] }
        return options + arguments[end...]
    }

    /// Prints an error where it belongs. Help and the version are no errors.
    static func report(_ error: any Error, arguments: [String]) -> Int32 {
        if let failure = CommandFailure(known: error) {
            if let message = failure.message { Output.problem(message, exitStatus: failure.exitStatus) }
            return failure.exitStatus
        }
        if exitCode(for: error) == .success {
            Output.line(fullMessage(for: error))
            return 0
        }
        Output.problem(usageSentence(for: error, arguments: arguments), exitStatus: ExitStatus.usage)
        return ExitStatus.usage
    }

    private static var commandNames: [String] {
        configuration.subcommands.compactMap { $0.configuration.commandName }
    }

    /// ArgumentParser's message without what it adds on further lines, and where to look.
    private static func usageSentence(for error: any Error, arguments: [String]) -> String {
        let lines = message(for: error).split(separator: "\n").map { $0.trimmed }
        var text = lines.prefix { !$0.hasPrefix("Usage:") && !$0.hasPrefix("See ") }.joined(separator: " ")
        // The parser first says what an option that it does not know leads to.
        if let unknown = UnknownOption.first(in: arguments), !text.hasPrefix("Unknown option") { text = unknown }
        let known = commandNames
        let first = arguments.first { !$0.hasPrefix("-") }
        let command = first.flatMap { known.contains($0) ? " \($0)" : nil } ?? ""
        var sentence = text.isEmpty ? "the command line is not understood" : text
        if command.isEmpty, let word = arguments.first(where: { !$0.hasPrefix("-") }) {
            sentence = "'\(word)' is no command"
            if let near = Suggestion.nearest(to: word, among: known) { sentence += "; did you mean '\(near)'?" }
        }
        return "\(sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence); see 'promisefs\(command) --help'"
    }
}

extension StringProtocol {
    var trimmed: String {
        var rest = self[...]
        while rest.first?.isWhitespace ?? false { rest = rest.dropFirst() }
        while rest.last?.isWhitespace ?? false { rest = rest.dropLast() }
        return String(rest)
    }
}
