import ArgumentParser
import PromiseCore
import PromiseKit
import PromiseWire

struct RestartCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restart",
        abstract: "Replace the daemon of a mount, after an upgrade say, while programs go on using the mount.",
        discussion: """
            Open files stay open and calls wait for the new daemon. With --io-uring the mount is made anew instead: \
            calls fail for a moment, and it is refused while files are open. Fails where 'promisefs status' says that \
            the mount would end with its daemon.

            Example:
              promisefs restart /mnt
            """)

    @Argument(help: "A path on a mount.")
    var path: PathArgument
    @OptionGroup var output: OutputOptions

    private struct Document: Encodable {
        var domain: String
        var processID: Int32
        var restarts: Int
    }

    func run() async throws {
        Output.goesOnWithoutReader()
        let location = try await Targets.location(of: path, namesDomain: true)
        let status = try await PromiseClient(mount: location.mount).restart()
        if output.json {
            return Output.json(Document(domain: status.name, processID: status.processID, restarts: status.restarts))
        }
        Output.line("\(status.name) is served by process \(status.processID)")
    }
}
