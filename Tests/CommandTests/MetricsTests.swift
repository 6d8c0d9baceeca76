import PromiseWire
import Testing

@testable import promisefs

@Suite struct MetricsTests {
    private func status(_ name: String) -> StatusDocument {
        var status = StatusDocument(
            name: name, provider: "folder:/c", capabilities: [], mountPoint: "/m", mountPointBytes: "/m", stateFolder: "/s",
            stateFolderBytes: "/s", processID: 1, connection: "online", transport: "device", requests: ["open": 3, "lookup": 7],
            hasPassthrough: true, isReadOnly: false, nodes: 5, placeholders: 2, pending: 1, failing: 0, uploading: 0,
            downloading: 0, bytesFetched: 10, bytesUploaded: 20, cacheBytes: 30, openFiles: 4)
        status.hydrations = [HydrationDocument(program: #"a "b"\c"#, fetches: 1, bytes: 2, refusals: 0)]
        return status
    }

    private func metrics() -> Metrics {
        Metrics([
            Metrics.Domain(name: "work", mountPoint: "/mnt/work", status: status("work")),
            Metrics.Domain(name: "dead", mountPoint: "/mnt/dead", status: nil),
        ])
    }

    @Test func eachNameHasItsHelpAndTypeOnceBeforeItsSamples() {
        let lines = metrics().text.split(separator: "\n").map(String.init)
        var seen: Set<String> = []
        var current = ""
        for (number, line) in lines.enumerated() {
            if line.hasPrefix("# HELP ") {
                current = String(line.split(separator: " ")[2])
                #expect(seen.insert(current).inserted, "\(line)")
                #expect(lines[number + 1].hasPrefix("# TYPE \(current) "))
                #expect(lines[number + 1].hasSuffix(current.hasSuffix("_total") ? " counter" : " gauge"))
            } else if !line.hasPrefix("#") {
                #expect(line.hasPrefix(current + "{"), "\(line)")
            }
        }
        #expect(lines.contains(#"promisefs_pending_items{domain="work",mountpoint="/mnt/work"} 1"#))
        #expect(lines.contains(#"promisefs_requests_total{domain="work",mountpoint="/mnt/work",request="open"} 3"#))
    }

    @Test func aDomainWithoutADaemonIsDownAndNothingElse() {
        let samples = metrics().samples.filter { $0.labels["domain"] == "dead" }
        #expect(samples.map(\.name) == ["promisefs_up"] && samples[0].value == 0)
    }

    @Test func whatStrangersNameBreaksNoLine() {
        #expect(metrics().text.contains(#"program="a \"b\"\\c"} 2"#))
    }
}
