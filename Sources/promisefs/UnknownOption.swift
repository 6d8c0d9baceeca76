import ArgumentParser

/// An option that a command does not have.
enum UnknownOption {
    /// A sentence on the first one, with the one that was probably meant; nil: there is none.
    static func first(in arguments: [String]) -> String? {
        guard let name = arguments.first, let known = options(of: name) else { return nil }
        for word in arguments.dropFirst().prefix(while: { $0 != "--" }) where word.hasPrefix("--") {
            let option = String(word.prefix { $0 != "=" })
            guard !known.contains(option) else { continue }
            let near = Suggestion.nearest(to: option, among: known).map { ". Did you mean '\($0)'?" } ?? ""
            return "Unknown option '\(option)'\(near)"
        }
        return nil
    }

    /// As its help lists them. Nil for what has commands of its own, and runs those of others.
    private static func options(of name: String) -> [String]? {
        let all = PromiseFS.configuration.subcommands
        guard let command = all.first(where: { $0.configuration.commandName == name }),
            command.configuration.subcommands.isEmpty
        else { return nil }
        let words = PromiseFS.helpMessage(for: command).split { !($0.isLetter || $0.isNumber || $0 == "-") }
        return words.filter { $0.hasPrefix("--") && $0.count > 2 }.map(String.init)
    }
}
