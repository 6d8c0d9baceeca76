import ArgumentParser
import PromiseCore
import PromiseKit
import PromiseWire

struct ShareCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "share",
        abstract: "Make, list and revoke links by which anybody reaches an item.",
        discussion: """
            The link leads to the provider, and works without this machine. On S3 it is signed for a file, ends after seven \
            days at most, and cannot be revoked or listed; on Nextcloud and ownCloud it is a public link, and ends with a day; \
            some extensions make links, too. \
            Other providers have none. What is not stored there yet is refused.

            Example:
              promisefs share /mnt/report.pdf --until 2027-01-31
              promisefs share list
              promisefs share revoke 17
            """,
        subcommands: [Make.self, List.self, Revoke.self], defaultSubcommand: Make.self)

    struct Make: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print a link to an item, which is what 'promisefs share PATH' does.",
            discussion: """
                With --json it is one object.

                Example:
                  promisefs share make /mnt/report.pdf --until 2027-01-31
                """)
        @Argument(help: ArgumentHelp("The file or folder.", valueName: "path"))
        var path: PathArgument
        @Option(
            name: .long,
            help: ArgumentHelp("When it ends, as 2027-01-31 or 2027-01-31T12:00:00Z.", valueName: "date"))
        var until: String?
        @OptionGroup var output: OutputOptions

        func run() async throws {
            let location = try await Targets.location(of: path)
            let link = try await PromiseClient(mount: location.mount).share(location.path, until: until)
            if output.json { return Output.json(link) }
            Output.line(link.url)
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List links to what is in a domain: their ids, ends, addresses and items.",
            discussion: """
                With --json it is one object.

                Example:
                  promisefs share list --domain work
                """)
        @OptionGroup var place: GrantsCommand.Place

        func run() async throws {
            let mount = try await place.mount()
            let document = try await PromiseClient(mount: mount).links()
            if place.output.json { return Output.json(document) }
            Output.text(
                table(
                    document.links.map { link in
                        [
                            link.id ?? "-", link.until ?? "until revoked", link.url,
                            link.path.map { shownPath($0, on: mount) } ?? "-",
                        ]
                    }))
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Take back links, by the ids that 'promisefs share list' prints.",
            discussion: """
                With --json it is one object.

                Example:
                  promisefs share revoke 17
                """)
        @Argument(help: ArgumentHelp("Their ids.", valueName: "link")) var links: [String]
        @OptionGroup var place: GrantsCommand.Place

        func run() async throws {
            let mount = try await place.mount()
            let client = try PromiseClient(mount: mount)
            var failures = FailureCollector()
            var revoked: Set<String> = []
            for link in links where !revoked.contains(link) {
                do throws(PromiseError) {
                    try await client.revokeLink(link)
                    revoked.insert(link)
                    if !place.output.json { Output.line("revoked \(link)") }
                } catch {
                    let sentence = "\(link): \(error.message)"
                    failures.note(CommandFailure(sentence, exitStatus: error.exitStatus))
                }
            }
            if place.output.json { Output.json(DoneDocument(done: failures.first == nil)) }
            try failures.finish()
        }
    }
}
