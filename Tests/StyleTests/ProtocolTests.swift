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
        #expect(!served.isEmpty)
        let described = try operations(in: "openapi.yaml")
        #expect(served == described, "docs/openapi.yaml and the routes differ")
    }

    /// What the provider asks of extensions is what their authors read, and both examples answer all of it.
    @Test func theDocumentOfExtensionsHasEveryRequest() throws {
        let described = try operations(in: "extension-openapi.yaml")
        let text = SourceTree.swiftFiles.filter { $0.path.hasPrefix("Sources/PromiseExtension/") }.flatMap(\.lines)
        // The words of the paths, and the methods, that stand in requests.
        for operation in described {
            let parts = operation.split(separator: " ")
            let word = parts[1].split(separator: "/").last { !$0.hasPrefix("{") } ?? ""
            #expect(text.contains { $0.contains("\(word)") && $0.contains("\"") }, "nothing asks for \(operation)")
            #expect(text.contains { $0.contains(".\(parts[0].uppercased())") }, "nothing sends \(parts[0])")
        }
        let call = try Regex("case \\[\"([A-Z]+)\", (.*)\\]:")
        let example = try String(contentsOfFile: SourceTree.root + "/Examples/PythonExtension/extension.py", encoding: .utf8)
        var answered: Set<String> = []
        for match in example.matches(of: call) {
            let words = (match.output[2].substring ?? "").split(separator: ", ").map { word in
                word.hasPrefix("\"") ? String(word.dropFirst().dropLast()) : "{\(word)}"
            }
            answered.insert("\((match.output[1].substring ?? "").lowercased()) /v1/\(words.joined(separator: "/"))")
        }
        #expect(answered == described, "docs/extension-openapi.yaml and Examples/PythonExtension differ")
    }

    /// What an extension may declare is what its author reads.
    @Test func theDocumentOfExtensionsHasEveryCapability() throws {
        let document = try String(contentsOfFile: SourceTree.root + "/docs/extension-openapi.yaml", encoding: .utf8)
        let list = try #require(document.split(separator: "\n").first { $0.contains("items: {enum: [stable-identifiers") })
        let described = Set(list.split { !($0.isLowercase || $0 == "-") }.map(String.init)).subtracting(["items", "enum"])
        var words: [String: String] = [:]
        for match in try source("PromiseProvider/ItemReference.swift").matches(of: /\(\.([A-Za-z]+), "([a-z-]+)"\)/) {
            words[String(match.output.1)] = String(match.output.2)
        }
        let provider = try source("PromiseExtension/ExtensionProvider.swift")
        let allowed = try #require(provider.firstMatch(of: /allowed: Capabilities = \[([^\]]*)\]/)).output.1
        let understood = Set(allowed.matches(of: /\.([A-Za-z]+)/).compactMap { words[String($0.output.1)] })
        #expect(understood == described)
    }

    private func source(_ path: String) throws -> String {
        try String(contentsOfFile: SourceTree.root + "/Sources/" + path, encoding: .utf8)
    }

    /// `get /v1/status` and the like.
    private func operations(in document: String) throws -> Set<String> {
        let text = try String(contentsOfFile: SourceTree.root + "/docs/" + document, encoding: .utf8)
        var described: Set<String> = []
        var path = ""
        for line in text.split(separator: "\n") {
            if line.hasPrefix("  /") { path = line.dropFirst(2).split(separator: ":").first.map(String.init) ?? "" }
            for method in ["get", "post", "delete", "put", "patch"] where line == "    \(method):" {
                described.insert("\(method) \(path)")
            }
        }
        return described
    }

    /// Of each wire type that a document describes: the same properties.
    @Test(arguments: [("openapi.yaml", 10), ("extension-openapi.yaml", 6)])
    func theDocumentOfAProtocolHasEveryProperty(document: String, count: Int) throws {
        let described = try schemas(in: document)
        var problems: [String] = []
        for (name, properties) in wireTypes() {
            guard let known = described[name] else { continue }
            let difference = known.symmetricDifference(properties).sorted()
            if !difference.isEmpty { problems.append("\(name): \(difference.joined(separator: ", "))") }
        }
        #expect(described.count > count)
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

    /// By name: the properties of the schemas in a document.
    private func schemas(in document: String) throws -> [String: Set<String>] {
        let text = try String(contentsOfFile: SourceTree.root + "/docs/" + document, encoding: .utf8)
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
