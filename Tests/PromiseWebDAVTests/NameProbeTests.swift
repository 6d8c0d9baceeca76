import Foundation
import Logging
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// What a server does to names is tried, and what it cannot keep is escaped from then on.
struct NameProbeTests {
    @Test(arguments: NameQuirk.allCases) func whatAServerDoesToNamesIsKnown(quirk: NameQuirk) async throws {
        let names = NameServer(quirk)
        let server = ScriptedServer { names.answer($0) }
        defer { server.stop() }
        let provider = try WebDAVProvider(
            location: try WebDAVLocation(parsing: "webdav+http://127.0.0.1:\(server.port)/"), credentials: CredentialSource(),
            stateFolder: nil, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await provider.connect()
        let found = provider.limitations.filter { $0.contains("cannot keep names") }
        let shown = quirk.shown.map { "the server cannot keep names with \($0): they are escaped there, a dot as ‛2E" }
        #expect(found == (shown.map { [$0] } ?? []))

        let root = ItemReference(identifier: try await provider.root().identifier, path: [])
        let hostile = [".a\\b\n#?%25; ", "\u{E9}", "e\u{301}"].map { FileName($0)! }
        for name in hostile {
            let metadata = Metadata(mode: 0o755, owner: 1, group: 2, modificationTime: .zero)
            _ = try await provider.create(NewItem(name: name, kind: .folder, metadata: metadata), in: root, contents: nil)
        }
        #expect(Set(try await provider.enumerateItems(in: root, page: nil).items.map(\.name)) == Set(hostile))
        #expect(names.paths.filter { $0.hasPrefix("/.promisefs/uploads/") }.isEmpty)
    }
}

enum NameQuirk: CaseIterable, Sendable {
    case none, refusesBackslashes, trims, hidesDots, composes, listsControlsAsTheyAre, cutsDestinations

    /// How it is told to people.
    var shown: String? {
        switch self {
        case .none: nil
        case .refusesBackslashes: "\\"
        case .trims: "a space at an end or a dot at the end"
        case .hidesDots: "a dot first"
        case .composes: "letters in Unicode's decomposed form"
        case .listsControlsAsTheyAre: "control characters"
        case .cutsDestinations: "# % & + ; = ? @"
        }
    }
}

/// Files and folders in memory, on a server that has one quirk.
final class NameServer: Sendable {
    private let quirk: NameQuirk
    /// By place, percent-encoded. Folders have no content.
    private let items: Mutex<[String: String?]>

    /// `files`: contents by place.
    init(_ quirk: NameQuirk, _ files: [String: String] = [:]) {
        self.quirk = quirk
        var items: [String: String?] = [:]
        for (path, text) in files {
            items["/" + path.split(separator: "/").map { PercentEncoding.encoded(Array($0.utf8)) }.joined(separator: "/")] = text
        }
        self.items = Mutex(items)
    }

    var paths: [String] { items.withLock { Array($0.keys) } }

    func answer(_ request: ScriptedServer.Request) -> String? {
        guard let path = place(request.path) else { return reply("400 Bad Request") }
        return items.withLock { items in
            switch request.method {
            case "OPTIONS": return reply("200 OK", ["DAV: 1", "Server: s"])
            case "MKCOL":
                guard items.updateValue(nil, forKey: path) == nil else { return reply("405 Method Not Allowed") }
                return reply("201 Created")
            case "PUT" where !request.head.contains("Content-Range"):
                items[path] = request.body
                return reply("201 Created")
            case "PROPFIND" where path.isEmpty || items[path] == .some(.none): return listing(of: path, items)
            case "MOVE", "DELETE", "GET", "HEAD", "PROPFIND": break
            default: return reply("501 Not Implemented")
            }
            guard case .some(.some(let text)) = items[path] else {
                guard request.method == "DELETE", items[path] != nil else { return reply("404 Not Found") }
                items = items.filter { $0.key != path && !$0.key.hasPrefix(path + "/") }
                return reply("204 No Content")
            }
            switch request.method {
            case "DELETE": items[path] = nil
            case "MOVE":
                guard let target = place(destination(request)) else { return reply("400 Bad Request") }
                if request.head.contains("Overwrite: F"), items[target] != nil { return reply("412 Precondition Failed") }
                items[path] = nil
                items[target] = text
            case "PROPFIND": return rows((request.path, properties(of: text)))
            case "HEAD": return reply("200 OK", ["ETag: \"\(text)\""], length: text.utf8.count)
            default: return reply("200 OK", ["ETag: \"\(text)\""], text)
            }
            return reply("204 No Content")
        }
    }

    private func destination(_ request: ScriptedServer.Request) -> String {
        let line = request.head.split(separator: "\r\n").first { $0.hasPrefix("Destination: ") } ?? ""
        var target = "/" + line.split(separator: "/").dropFirst(2).joined(separator: "/")
        if quirk == .cutsDestinations {
            for mark in ["%23", "%3F", "%3B"] { target = target.components(separatedBy: mark)[0] }
        }
        return target
    }

    /// Without a slash at the end. Nil: refused.
    private func place(_ path: String) -> String? {
        let names = path.split(separator: "/").map { String(decoding: PercentEncoding.decoded($0) ?? [], as: UTF8.self) }
        if quirk == .refusesBackslashes, names.contains(where: { $0.contains("\\") }) { return nil }
        return names.map { "/" + PercentEncoding.encoded(Array(stored($0).utf8)) }.joined()
    }

    private func stored(_ name: String) -> String {
        switch quirk {
        case .trims: name.trimmingCharacters(in: .whitespaces).replacing(#/\.+$/#, with: "")
        case .composes: name.precomposedStringWithCanonicalMapping
        default: name
        }
    }

    private func listing(of folder: String, _ items: [String: String?]) -> String {
        var text = "<response><href>\(folder)/</href>\(collection)</response>"
        for (path, content) in items where path.hasPrefix(folder + "/") {
            let name = String(path.dropFirst(folder.count + 1))
            if name.contains("/") || (quirk == .hidesDots && name.hasPrefix(".")) { continue }
            let isRaw = quirk == .listsControlsAsTheyAre && name.contains("%01")
            let reference = isRaw ? name.replacing("%01", with: "\u{1}") : name
            text += "<response><href>\(folder)/\(reference)</href>\(content.map(properties) ?? collection)</response>"
        }
        return reply("207 Multi-Status", [], "<multistatus xmlns=\"DAV:\">\(text)</multistatus>")
    }

    private func properties(of text: String) -> String {
        """
        <propstat><prop><resourcetype/><getetag>"\(text)"</getetag><getcontentlength>\(text.utf8.count)</getcontentlength></prop>\
        <status>HTTP/1.1 200 OK</status></propstat>
        """
    }
}
