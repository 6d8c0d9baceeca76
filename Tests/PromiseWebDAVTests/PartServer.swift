import PromiseCore
import PromiseTestSupport
import Synchronization

/// A WebDAV server without locks and properties that keeps files in memory, and writes parts of them as a test says.
final class PartServer: Sendable {
    enum Conduct: CaseIterable {
        case writesParts, patches, joinsChunks, replacesByThePart, cutsBehindThePart, fillsWhatIsMissing, takesNone
    }

    struct State: Sendable {
        var files: [String: String] = [:]
        /// Parts, of a file that is there, that are taken before the connection is cut; nil: all.
        var partsLeft: Int?
        /// They are gone when the next part comes.
        var losesFiles = false
        var sentByteCount = 0
    }

    let conduct: Conduct
    /// Of the user's files; parts go beside them.
    var base: String { conduct == .joinsChunks ? "/dav/files/u/" : "/" }
    let state = Mutex(State())

    init(_ conduct: Conduct) { self.conduct = conduct }

    func start() -> ScriptedServer { ScriptedServer { [self] request in answer(request) } }

    private func answer(_ request: ScriptedServer.Request) -> String? {
        state.withLock { state in
            switch request.method {
            case "OPTIONS": return reply("200 OK", ["DAV: 1", "Server: s"])
            case "MKCOL": return reply("201 Created")
            case "PUT", "PATCH": return write(request, &state)
            case "GET", "HEAD": return read(request, state)
            case "DELETE": return reply(state.files.removeValue(forKey: request.path) == nil ? "404 Not Found" : "204 No Content")
            case "MOVE": return move(request, &state)
            case "COPY":
                state.files[target(request)] = state.files[request.path]
                return reply("201 Created")
            case "PROPFIND": return list(request, state)
            default: return reply("405 Method Not Allowed")
            }
        }
    }

    private func move(_ request: ScriptedServer.Request, _ state: inout State) -> String {
        var content = state.files.removeValue(forKey: request.path)
        if request.path.hasSuffix("/.file") {
            let parts = state.files.filter { $0.key.hasPrefix(request.path.dropLast(5)) }.sorted { $0.key < $1.key }
            let joined = parts.map(\.value).joined()
            guard header("OC-Total-Length", request) == "\(joined.utf8.count)" else { return reply("400 Bad Request") }
            for part in parts { state.files[part.key] = nil }
            content = joined
        }
        guard let content else { return reply("404 Not Found") }
        state.files[target(request)] = content
        return reply("201 Created")
    }

    private func target(_ request: ScriptedServer.Request) -> String {
        "/" + header("Destination", request).split(separator: "/").dropFirst(2).joined(separator: "/")
    }

    private func write(_ request: ScriptedServer.Request, _ state: inout State) -> String? {
        let isPatch = request.method == "PATCH"
        let range = header(isPatch ? "X-Update-Range" : "Content-Range", request)
        let isKnown = range.isEmpty ? !isPatch : isPatch == (conduct == .patches) && ![.takesNone, .joinsChunks].contains(conduct)
        guard isKnown else { return reply("501 Not Implemented") }
        let isPart = !range.isEmpty || request.path.hasPrefix("/dav/uploads/u/")
        if isPart, let left = state.partsLeft {
            guard left > 0 else { return nil }
            state.partsLeft = left - 1
        }
        if state.losesFiles, !range.isEmpty { state.files[request.path] = nil }
        state.sentByteCount += request.body.utf8.count
        let old = state.files[request.path]
        guard !range.isEmpty, conduct != .replacesByThePart else {
            state.files[request.path] = request.body
            return reply(old == nil ? "201 Created" : "204 No Content")
        }
        if old == nil, conduct != .fillsWhatIsMissing { return reply("412 Precondition Failed") }
        let start = range.drop { !$0.isNumber }.prefix { $0.isNumber }
        let offset = Int(start) ?? 0
        var content = Array((old ?? "").utf8)
        content += [UInt8](repeating: 0, count: max(0, offset - content.count))
        let end = conduct == .cutsBehindThePart ? content.count : min(content.count, offset + request.body.utf8.count)
        content.replaceSubrange(offset..<end, with: Array(request.body.utf8))
        state.files[request.path] = String(decoding: content, as: UTF8.self)
        return reply(old == nil ? "201 Created" : "204 No Content")
    }

    private func read(_ request: ScriptedServer.Request, _ state: State) -> String {
        guard let content = state.files[request.path] else { return reply("404 Not Found") }
        let headers = ["ETag: \"\(tag(content))\"", "Last-Modified: Sun, 22 Nov 2026 09:39:31 GMT"]
        if request.method == "HEAD" { return reply("200 OK", headers, length: content.utf8.count) }
        let bounds = header("Range", request).split { !$0.isNumber }.compactMap { Int($0) }
        guard bounds.count == 2 else { return reply("200 OK", headers, content) }
        let part = String(decoding: Array(content.utf8)[bounds[0]...bounds[1]], as: UTF8.self)
        let range = "Content-Range: bytes \(bounds[0])-\(bounds[1])/\(content.utf8.count)"
        return reply("206 Partial Content", headers + [range], part)
    }

    private func list(_ request: ScriptedServer.Request, _ state: State) -> String {
        if let content = state.files[request.path] { return row(request.path, content) }
        let isFolder = request.path.hasSuffix("/")
        guard isFolder else { return reply("404 Not Found") }
        let inside = state.files.filter { $0.key.hasPrefix(request.path) }.map { file($0.key, $0.value) }.joined()
        let own = "<response><href>\(request.path)</href>\(collection)</response>"
        return reply("207 Multi-Status", [], "<multistatus xmlns=\"DAV:\">\(own)\(inside)</multistatus>")
    }

    private func row(_ path: String, _ content: String) -> String {
        reply("207 Multi-Status", [], "<multistatus xmlns=\"DAV:\">\(file(path, content))</multistatus>")
    }

    private func file(_ path: String, _ content: String) -> String {
        """
        <response><href>\(path)</href><propstat><prop><resourcetype/><getetag>"\(tag(content))"</getetag>\
        <getcontentlength>\(content.utf8.count)</getcontentlength></prop><status>HTTP/1.1 200 OK</status></propstat></response>
        """
    }

    private func tag(_ content: String) -> String { String(UInt(bitPattern: content.hashValue), radix: 36) }

    private func header(_ name: String, _ request: ScriptedServer.Request) -> String {
        let line = request.head.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
        return line.map { String($0.drop { $0 != ":" }.dropFirst(2)) } ?? ""
    }
}
