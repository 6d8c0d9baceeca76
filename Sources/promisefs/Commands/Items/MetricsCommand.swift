import ArgumentParser
import PromiseCore
import PromiseKit
import PromiseWire

struct MetricsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "metrics",
        abstract: "Print numbers of domains as Prometheus reads them.",
        discussion: """
            Without PATH of all mounted domains. A domain whose daemon does not answer has promisefs_up 0. For the textfile \
            collector of node_exporter, or whatever reads that format. With --json it is an array of samples.

            Example:
              promisefs metrics > /var/lib/node_exporter/promisefs.prom
            """)

    @Argument(help: "A path on a mount, or a domain's name.")
    var path: PathArgument?
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let mounts =
            if let path {
                [try await Targets.location(of: path, namesDomain: true).mount]
            } else {
                try await Targets.mounts()
            }
        var domains: [Metrics.Domain] = []
        for mount in mounts {
            var domain = Metrics.Domain(name: mount.domain, mountPoint: escapedForDisplay(mount.mountPoint))
            defer { domains.append(domain) }
            do throws(PromiseError) {
                domain.status = try await PromiseClient(mount: mount).status()
            } catch {
                Output.problem("\(mount.domain): \(error.message)")
            }
        }
        let metrics = Metrics(domains)
        if output.json { Output.json(metrics.samples) } else { Output.text(metrics.text) }
    }
}
