import ArgumentParser
import PromiseCore
import PromiseKit
import PromiseWire

struct BookmarkCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bookmark",
        abstract: "Text that finds an item again, whatever it is called then.",
        discussion: """
            A bookmark is of use on this machine, and to the application that it was made for. It finds its item after renames, \
            moves and replacement, says when it is stale, and what was known of an item that is gone.

            Example:
              text=$(promisefs bookmark create /mnt/plan.md --app com.example.editor)
              promisefs bookmark resolve "$text" --app com.example.editor
            """,
        subcommands: [Create.self, Resolve.self])

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print a bookmark of an item: one line of base64url.",
            discussion: """
                With --json it is one object.

                Example:
                  promisefs bookmark create /mnt/plan.md --app com.example.editor --read-only
                """)
        @Argument(help: "The document or folder.") var path: PathArgument
        @Option(name: .long, help: ArgumentHelp("Who may use it, as com.example.editor.", valueName: "id"))
        var app: String?
        @Flag(name: .long, help: "It gives no right to change the item.")
        var readOnly = false
        @OptionGroup var output: OutputOptions

        func run() async throws {
            let location = try await Targets.location(of: path)
            let bookmark = try await PromiseClient(mount: location.mount).bookmark(
                of: location.path, for: app, isReadOnly: readOnly)
            if output.json { return Output.json(BookmarkDocument(bookmark: bookmark)) }
            Output.line(bookmark)
        }
    }

    struct Resolve: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the path that a bookmark's item has now.",
            discussion: """
                Whether it is stale, and why, is said on stderr. Ends with status 1 when it leads nowhere, with 5 when it was \
                made for somebody else. With --json it is one object, with the renewed bookmark and what was known of the item.

                Example:
                  promisefs bookmark resolve "$text" --app com.example.editor --json
                """)
        @Argument(help: "The bookmark.") var text: String
        @Option(name: .long, help: ArgumentHelp("Who it was made for.", valueName: "id"))
        var app: String?
        @OptionGroup var output: OutputOptions

        func run() async throws {
            let (found, mount) = try await resolved()
            if output.json { Output.json(found) }
            guard let bytes = found.pathBytes.flatMap({ PercentCoding.decode($0[...]) }),
                let path = Location.absolutePath(of: Array(bytes.drop { $0 == 0x2F }), on: mount)
            else {
                throw CommandFailure("the bookmark leads nowhere: \(found.reason ?? "its item is not shown here")")
            }
            if output.json { return }
            Output.bytes(path)
            if let reason = found.reason { Output.problem("the bookmark is stale: \(reason)") }
        }

        /// A bookmark does not say of which domain it is.
        private func resolved() async throws -> (ResolvedBookmarkDocument, MountEntry) {
            let mounts = try await Targets.ownMounts()
            guard !mounts.isEmpty else {
                throw CommandFailure(
                    "no domain is mounted; try: promisefs mount --help", exitStatus: ExitStatus.notPromiseFS)
            }
            var problem: PromiseError?
            for mount in mounts {
                do throws(PromiseError) {
                    return (try await PromiseClient(mount: mount).resolve(bookmark: text, for: app), mount)
                } catch {
                    // What another domain says matters less than what its own one does.
                    if problem == nil || error.exitStatus != 5 { problem = error }
                }
            }
            if mounts.count > 1, problem?.exitStatus == 5 {
                let whom = app ?? "its owner"
                throw CommandFailure("this is no bookmark that a mounted domain has given to \(whom)", exitStatus: 5)
            }
            throw problem.map { CommandFailure($0) } ?? CommandFailure("the bookmark leads nowhere")
        }
    }
}
