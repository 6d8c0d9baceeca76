import ArgumentParser

struct ProviderCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "provider",
        abstract: "What storages can be mounted.",
        discussion: """
            Example:
              promisefs provider list
            """,
        subcommands: [ProviderListCommand.self])
}

struct ProviderListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the providers that this program has.",
        discussion: """
            Example:
              promisefs provider list --json
            """)

    @OptionGroup var output: OutputOptions

    private struct Document: Encodable {
        var scheme: String
        var form: String
        var description: String
    }

    func run() async throws {
        let providers = ProviderName.schemes.map { Document(scheme: $0.name, form: $0.form, description: $0.description) }
        if output.json { return Output.json(providers) }
        Output.text(table(providers.map { [$0.form, $0.description] }))
    }
}
