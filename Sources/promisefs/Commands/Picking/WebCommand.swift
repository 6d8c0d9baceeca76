import ArgumentParser
import Glibc
import PromiseCore
import PromiseKit
import PromisePicker

struct WebCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "web",
        abstract: "Look after all mounted domains by a page in the browser.",
        discussion: """
            It shows the domains with their state, what is under way, what is wrong and what to \
            do, conflicts with the difference of texts and a choice, and what is kept here, to be \
            evicted or pinned. The page is served on loopback, to this user and one browser, until \
            it is interrupted or nobody has looked for an hour. With --json the address is one object.

            Example:
              promisefs web
            """)

    @Flag(name: .long, help: "Print the address, and open no browser.")
    var noBrowser = false
    @OptionGroup var output: OutputOptions

    private struct Document: Encodable { var address: String }

    func run() async throws {
        let server = try await WebServer(OverviewSite { try MountTable.current().promiseMounts(of: geteuid()) })
        defer { Browser.forget() }
        let serving = Task { try await server.run() }
        if output.json {
            Output.json(Document(address: server.address))
        } else if noBrowser {
            Output.line(server.address)
        }
        await Browser.show(server.address, opens: !noBrowser, says: !output.json && !noBrowser)
        Interruption.ends { Browser.forget() }
        while server.idle < .seconds(3600) {
            try await Task.sleep(for: .seconds(1))
            if server.isEntered { Browser.forget() }
        }
        serving.cancel()
    }
}
