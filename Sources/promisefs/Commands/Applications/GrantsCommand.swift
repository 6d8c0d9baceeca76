import ArgumentParser
import PromiseCore
import PromiseKit
import PromiseWire

struct GrantsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "grants",
        abstract: "What applications were given, and what they did with it.",
        discussion: """
            A grant is an application's right to a file or folder, and to all that is in it, until it is revoked, a date \
            comes or the application ends. It follows the item wherever that is renamed or moved.

            Example:
              promisefs grants add /mnt/report.txt --app com.example.editor --read-only
              promisefs grants list --app com.example.editor
              promisefs grants revoke 7
            """,
        subcommands: [Add.self, List.self, Show.self, Revoke.self, Audit.self])

    struct Place: ParsableArguments {
        @Option(
            name: .long,
            help: ArgumentHelp("Of which domain; needed where several are mounted.", valueName: "name"))
        var domain: String?
        @OptionGroup var output: OutputOptions

        func mount() async throws -> MountEntry {
            try await Targets.mount(ofDomain: domain, saidBy: "--domain")
        }
    }

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give an application a file or folder, and print the number of the grant.",
            discussion: """
                With --json it is one object.

                Example:
                  promisefs grants add /mnt/reports --app com.example.editor --until 2027-01-31
                """)
        @Argument(help: ArgumentHelp("The file or folder.", valueName: "path"))
        var path: PathArgument
        @Option(
            name: .long, help: ArgumentHelp("The application, as com.example.editor.", valueName: "id"))
        var app: String
        @Flag(name: .long, help: "It may read, and not write.")
        var readOnly = false
        @Option(
            name: .long,
            help: ArgumentHelp("When it ends, as 2027-01-31 or 2027-01-31T12:00:00Z.", valueName: "date"))
        var until: String?
        @OptionGroup var output: OutputOptions

        func run() async throws {
            let location = try await Targets.location(of: path)
            let grant = try await PromiseClient(mount: location.mount).give(
                location.path, to: app, isReadOnly: readOnly, until: until)
            if output.json { return Output.json(grant) }
            Output.line("\(grant.id)")
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List grants: number, application, rights, until when, and where the item is.",
            discussion: """
                With --json it is one object, which also counts accesses that applications began and never ended.

                Example:
                  promisefs grants list --app com.example.editor
                """)
        @Option(name: .long, help: ArgumentHelp("Of this application alone.", valueName: "id"))
        var app: String?
        @OptionGroup var place: Place

        func run() async throws {
            let mount = try await place.mount()
            let document = try await PromiseClient(mount: mount).grants(of: app)
            if place.output.json { return Output.json(document) }
            Output.text(table(document.grants.map { GrantsCommand.row($0, mount) }))
            for (application, count) in document.unbalanced.sorted(by: { $0.key < $1.key }) {
                Output.problem("\(application) began \(count) accesses that it never ended")
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show one grant.",
            discussion: """
                With --json it is one object.

                Example:
                  promisefs grants show 7
                """)
        @Argument(help: ArgumentHelp("Its number.", valueName: "grant")) var grant: Int64
        @OptionGroup var place: Place

        func run() async throws {
            let mount = try await place.mount()
            let found = try await PromiseClient(mount: mount).grant(grant)
            if place.output.json { return Output.json(found) }
            var lines = [["grant", "\(found.id) (\(found.kind))"], ["application", found.application]]
            lines.append(["rights", found.rights])
            lines.append(["until", GrantsCommand.end(found)])
            lines.append(["item", found.path.map { shownPath($0, on: mount) } ?? "- \(found.reason ?? "")"])
            lines.append(["shown as", found.name])
            lines.append(["given by", found.giver ?? "the owner"])
            if let parent = found.parent { lines.append(["made from", "\(parent)"]) }
            lines.append(["made", found.made])
            if found.scopes > 0 { lines.append(["accesses", "\(found.scopes) under way"]) }
            Output.text(table(lines))
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Take back grants, with all that was made from them.",
            discussion: """
                With --json it is one object, with what was revoked.

                Example:
                  promisefs grants revoke 7 9
                  promisefs grants revoke --app com.example.editor
                """)
        @Argument(help: ArgumentHelp("Their numbers.", valueName: "grant")) var grants: [Int64] = []
        @Option(name: .long, help: ArgumentHelp("All of this application.", valueName: "id"))
        var app: String?
        @OptionGroup var place: Place

        func validate() throws {
            if grants.isEmpty == (app == nil) {
                throw ValidationError("say which: numbers of grants, or --app")
            }
        }

        func run() async throws {
            let mount = try await place.mount()
            let client = try PromiseClient(mount: mount)
            var removed: [GrantDocument] = []
            var failures = FailureCollector()
            if let app { removed = try await client.revokeAll(of: app) }
            // One that was made from an earlier one went with that.
            for grant in grants where !removed.contains(where: { $0.id == grant }) {
                do throws(PromiseError) {
                    removed += try await client.revoke(grant)
                } catch {
                    failures.note(CommandFailure(error))
                }
            }
            if place.output.json {
                Output.json(GrantsDocument(grants: removed))
            } else {
                for grant in removed { Output.line("revoked \(grant.id) of \(grant.application)") }
            }
            try failures.finish()
        }
    }

    struct Audit: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show what was given, used, refused and revoked, oldest first.",
            discussion: """
                With --json it is one object a line.

                Example:
                  promisefs grants audit --app com.example.editor
                """)
        @Option(name: .long, help: ArgumentHelp("By or about this application alone.", valueName: "id"))
        var app: String?
        @Option(name: .long, help: ArgumentHelp("The newest lines, at most.", valueName: "number"))
        var limit = 1_000
        @OptionGroup var place: Place

        func run() async throws {
            let mount = try await place.mount()
            let lines = try await PromiseClient(mount: mount).audit(
                of: app, limit: max(0, limit))
            if place.output.json {
                for line in lines { Output.json(line) }
                return
            }
            Output.text(
                table(
                    lines.map { line in
                        [
                            line.time, line.by, line.outcome, line.call, line.application ?? "",
                            line.grant.map { "grant \($0)" } ?? "",
                            escapedForDisplay((line.detail ?? "").utf8),
                        ]
                    }))
        }
    }

    private static func row(_ grant: GrantDocument, _ mount: MountEntry) -> [String] {
        [
            "\(grant.id)", grant.application, grant.rights, end(grant),
            grant.path.map { shownPath($0, on: mount) } ?? "- \(grant.reason ?? "")",
            grant.kind == "item" ? "" : grant.kind, grant.giver.map { "from \($0)" } ?? "",
            grant.scopes > 0 ? "\(grant.scopes) accesses" : "",
        ]
    }

    private static func end(_ grant: GrantDocument) -> String {
        if grant.launch != nil { return "while it runs" }
        return grant.until ?? "until revoked"
    }
}
