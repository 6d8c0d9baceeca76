import ArgumentParser
import PromiseCore
import PromiseKit
import PromiseWire

struct RevertCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revert",
        abstract: "Give up changes that the provider was not told of, or refuses.",
        discussion: """
            What the provider has comes back: content, place, mode and times, what was removed; what was made here goes. Of a \
            folder all changes below it are given up. Content that is given up is listed by 'promisefs versions PATH', and \
            brought back by its --get, until the cache needs the room. With --json it is one object for one domain, an array for \
            several.

            Example:
              promisefs revert /mnt/read-only/notes.txt
              promisefs versions /mnt/read-only/notes.txt
            """)

    @Argument(help: "Paths on a mount, also of what was removed there.")
    var paths: [PathArgument]
    @OptionGroup var output: OutputOptions

    func run() async throws {
        Output.goesOnWithoutReader()
        var failures = FailureCollector()
        var documents: [RevertDocument] = []
        for (mount, locations) in await Targets.byDomain(paths, &failures) {
            do throws(PromiseError) {
                let result = try await PromiseClient(mount: mount).revert(locations.map(\.path))
                documents.append(result)
                if !output.json { Output.line("\(counted(result.reverted, "change")) given up") }
                noteFailures(result.failures, on: mount, &failures)
            } catch {
                failures.note(CommandFailure(error))
            }
        }
        if output.json { printDocuments(documents) }
        try failures.finish()
    }
}
