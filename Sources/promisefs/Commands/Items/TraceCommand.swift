import ArgumentParser
import Glibc
import PromiseCore
import PromiseKit
import PromiseWire

struct TraceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trace",
        abstract: "Show the requests that a mount gets, with who made them and how long they took.",
        discussion: """
            Goes on until interrupted. What the kernel answers by itself is not seen: names and attributes it remembers, and \
            reading and writing content that is here. With --json it is one object a line.

            Example:
              promisefs trace /mnt
            """)

    @Argument(help: "A path on a mount: its domain is meant.")
    var path: PathArgument?
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let mount = try await Targets.onlyMount(of: path)
        Interruption.ends()
        do throws(PromiseError) {
            var events = try await PromiseClient(mount: mount).stream("GET", "trace").makeAsyncIterator()
            while let event = try await events.next() {
                guard event.name == "request",
                    let request = WireCoding.decode(TraceDocument.self, from: Array(event.data.utf8))
                else { continue }
                if let lost = request.lost { Output.problem("\(counted(lost, "request")) came too fast to be shown") }
                if output.json { Output.json(request) } else { Output.line(TraceCommand.line(request, on: mount)) }
            }
        } catch {
            throw CommandFailure(error)
        }
    }

    private static func line(_ request: TraceDocument, on mount: MountEntry) -> String {
        let place = request.path.map { shownPath($0, on: mount) } ?? "node \(request.node)"
        let error = request.errorNumber == 0 ? "" : "  " + Terminal.styled(String(cString: strerror(request.errorNumber)), .red)
        let program = request.program.map { "\($0)[\(request.process)]" } ?? "[\(request.process)]"
        return "\(request.microseconds) µs  \(request.operation)  \(place)  \(program)\(error)"
    }
}
