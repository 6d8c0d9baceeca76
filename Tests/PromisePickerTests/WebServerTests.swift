import Foundation
import PromisePicker
import Testing

@Suite struct WebServerTests {
    private struct Page: WebSite {
        var title: String { "page" }
        var script: String { "" }
        func answer(_ request: WebRequest) async -> WebResponse { .text("", status: 200) }
    }

    private func connection(_ port: Int) throws -> CInt {
        let file = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        try #require(file >= 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(file, $0, size) }
        }
        try #require(result == 0)
        return file
    }

    /// What comes within five seconds; empty where the connection ends, or nothing comes.
    private func answer(_ port: Int) throws -> String {
        let file = try connection(port)
        defer { close(file) }
        let request = "GET / HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n\r\n"
        _ = write(file, request, request.utf8.count)
        var look = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
        guard poll(&look, 1, 5_000) > 0 else { return "" }
        var bytes = [UInt8](repeating: 0, count: 4096)
        return String(decoding: bytes[..<max(0, read(file, &bytes, bytes.count))], as: UTF8.self)
    }

    /// One that was refused ended the process.
    @Test(.timeLimit(.minutes(2))) func connectionsBeyondThoseThatItTakesAreEndedAndNothingElse() async throws {
        let server = try await WebServer(Page())
        let serving = Task { try await server.run() }
        let files = try (0..<200).map { _ in try connection(server.port) }
        var look = pollfd(fd: files[199], events: Int16(POLLIN), revents: 0)
        // There is no place for the last one, and so it is ended.
        for _ in 0..<500 where poll(&look, 1, 0) == 0 { try await Task.sleep(for: .milliseconds(20)) }
        #expect(look.revents != 0)
        for file in files { close(file) }
        var page = ""
        for _ in 0..<100 where !page.hasPrefix("HTTP/1.1 200") {
            page = try answer(server.port)
            try await Task.sleep(for: .milliseconds(50))
        }
        #expect(page.hasPrefix("HTTP/1.1 200"))
        serving.cancel()
        _ = try? await serving.value
    }
}
