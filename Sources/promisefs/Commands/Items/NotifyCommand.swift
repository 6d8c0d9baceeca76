import ArgumentParser
import PromiseCore
import PromiseKit
import PromiseSystem
import PromiseWire

struct NotifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notify",
        abstract: "Tell the desktop of conflicts, of changes that are refused and of long downloads, until interrupted.",
        discussion: """
            Of all domains of this user that are mounted. The package promisefs-desktop starts it with the desktop. \
            'notifications = false' in the configuration file, for all domains or for one, turns it off. With --json each \
            is a line, and the desktop is told nothing.

            Example:
              promisefs notify
            """)

    @Option(name: .long, help: "How often it looks. (default: 30s)")
    var every: TimeSpan?
    @OptionGroup var output: OutputOptions

    private static let program = "notify-send"
    private var pause: Duration { every?.duration ?? .seconds(30) }

    func validate() throws {
        guard pause >= .milliseconds(100) else { throw ValidationError("--every is 100ms or more") }
    }

    func run() async throws {
        if !output.json, SystemMounts.program(NotifyCommand.program) == nil {
            throw CommandFailure("there is no \(NotifyCommand.program) here; install libnotify-bin")
        }
        Interruption.ends()
        var known: [[UInt8]: Tidings] = [:]
        while true {
            let mounts = (try? await Targets.ownMounts()) ?? []
            let file = await Blocking.run { () throws(Never) in try? ConfigurationFile.readLeniently() }
            known = known.filter { place, _ in mounts.contains { $0.mountPoint == place } }
            for mount in mounts where file?.notifies(of: mount.domain) ?? true {
                var tidings = known[mount.mountPoint] ?? Tidings(
                    domain: mount.domain, place: shellWord(mount.mountPoint))
                // One that does not answer now is asked the next time.
                if let news = try? await NotifyCommand.news(of: mount, &tidings) {
                    for tiding in news { await tell(tiding) }
                }
                known[mount.mountPoint] = tidings
            }
            try await Task.sleep(for: pause)
        }
    }

    private static func news(of mount: MountEntry, _ tidings: inout Tidings) async throws -> [Tidings.Tiding] {
        let client = try PromiseClient(mount: mount)
        let status = try await client.status()
        var look = Tidings.Look(time: SystemClock().uptime(), conflicts: status.conflicts ?? 0)
        // Of a provider that is away nothing is refused.
        if status.connection == "online" { look.refused = status.failing }
        if look.refused > 0 || status.downloading > 0 {
            for item in try await client.pending().items {
                if item.kind == "download" {
                    if item.isRunning { look.downloads[item.pathBytes] = item.path }
                } else if item.attempts > 0, look.reason == nil {
                    look.reason = item.error.map { "\(item.path): \($0)" }
                }
            }
        }
        let (news, ended) = tidings.take(look)
        var arrived: [Tidings.Tiding] = []
        for (item, name) in ended {
            guard let path = PercentCoding.decode(item[...]) else { continue }
            let now = try? await client.information(path: Array(path.drop { $0 == 0x2F }))
            if now?.state == "current" { arrived.append(tidings.arrived(name)) }
        }
        return news + arrived
    }

    /// What the desktop shows is markup, where names of files may look like some.
    private func tell(_ tiding: Tidings.Tiding) async {
        if output.json { return Output.json(tiding) }
        let text = tiding.text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
        let words = [NotifyCommand.program, "--app-name=PromiseFS", "--icon=folder-remote", "--", tiding.title, text]
        _ = await Blocking.run { () throws(Never) in try? Spawn.listen(to: words.map { Array($0.utf8) }) }
    }
}
