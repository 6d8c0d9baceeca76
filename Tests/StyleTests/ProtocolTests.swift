import Foundation
import Testing

/// The document of the control API names every route, and no other.
@Suite struct ProtocolTests {
    @Test func theDocumentOfTheProtocolHasEveryRoute() throws {
        let call = try Regex("router\\.(get|post|delete|put)\\(\"([^\"]+)\"")
        var served: Set<String> = []
        for file in SourceTree.swiftFiles where file.path.hasPrefix("Sources/PromiseControl/") {
            for match in file.lines.flatMap({ $0.matches(of: call) }) {
                let method = match.output[1].substring ?? ""
                let path = match.output[2].substring ?? ""
                let template = path.split(separator: "/").map { $0.hasPrefix(":") ? "{\($0.dropFirst())}" : String($0) }
                served.insert("\(method) /\(template.joined(separator: "/"))")
            }
        }
        let text = try String(contentsOfFile: SourceTree.root + "/docs/openapi.yaml", encoding: .utf8)
        var described: Set<String> = []
        var path = ""
        for line in text.split(separator: "\n") {
            if line.hasPrefix("  /") { path = line.dropFirst(2).split(separator: ":").first.map(String.init) ?? "" }
            for method in ["get", "post", "delete", "put"] where line == "    \(method):" {
                described.insert("\(method) \(path)")
            }
        }
        #expect(!served.isEmpty)
        #expect(served == described, "docs/openapi.yaml and the routes differ")
    }
}
