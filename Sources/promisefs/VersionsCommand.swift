import ArgumentParser
import PromiseCore
import PromiseKit
import PromiseWire

struct VersionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "versions",
        abstract: "List the versions of a document: its own, the provider's, and those of unresolved conflicts.",
        discussion: """
            Nothing is fetched. What the provider has is listed where that is not what is here. With --json it is one object.

            Example:
              promisefs versions /mnt/report.pdf
            """)

    @Argument(help: "A document on a mount, or one of its unresolved versions.")
    var path: PathArgument
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let document: VersionsDocument
        let mount: MountEntry
        do throws(PromiseError) {
            let location = try await Targets.location(of: path)
            mount = location.mount
            document = try await PromiseClient(mount: mount).versions(of: location.path)
        } catch {
            throw CommandFailure(error)
        }
        if output.json { return Output.json(document) }
        let rows = document.versions.map { version in
            [
                version.kind, version.modificationTime, ByteSize.text(version.size), version.isLocal ? "local" : "not local",
                version.version ?? "not uploaded", shownPath(version.path, on: mount),
            ]
        }
        Output.text(table(rows))
        Output.line("(\(document.note))")
    }
}
