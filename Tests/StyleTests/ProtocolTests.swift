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

    /// Of each wire type that the document describes: the same properties.
    @Test func theDocumentOfTheProtocolHasEveryProperty() throws {
        let described = try schemas()
        var problems: [String] = []
        for (name, properties) in wireTypes() {
            guard let known = described[name] else { continue }
            let difference = known.symmetricDifference(properties).sorted()
            if !difference.isEmpty { problems.append("\(name): \(difference.joined(separator: ", "))") }
        }
        #expect(described.count > 10)
        report(problems)
    }

    /// By name: the stored properties of the types of PromiseWire.
    private func wireTypes() -> [String: Set<String>] {
        var types: [String: Set<String>] = [:]
        for file in SourceTree.swiftFiles where file.path.hasPrefix("Sources/PromiseWire/") {
            var name: String?
            for line in file.code {
                if line.hasPrefix("public struct ") { name = line.dropFirst(14).prefix { $0.isLetter }.description }
                if line.hasPrefix("}") { name = nil }
                guard let name, line.hasPrefix("    public var "), !line.hasSuffix("{") else { continue }
                types[name, default: []].insert(line.dropFirst(15).prefix { $0.isLetter || $0.isNumber }.description)
            }
        }
        return types
    }

    /// By name: the properties of the schemas in `docs/openapi.yaml`.
    private func schemas() throws -> [String: Set<String>] {
        let text = try String(contentsOfFile: SourceTree.root + "/docs/openapi.yaml", encoding: .utf8)
        var schemas: [String: Set<String>] = [:]
        var name: String?
        var isInside = false
        for line in text.split(separator: "\n") {
            let depth = line.prefix { $0 == " " }.count
            let key = line.dropFirst(depth).prefix { $0 != ":" }.description
            if depth < 4 { isInside = key == "schemas" }
            guard isInside else { continue }
            if depth == 4 { name = key }
            if depth == 8, let name { schemas[name, default: []].insert(key) }
        }
        return schemas
    }
}
