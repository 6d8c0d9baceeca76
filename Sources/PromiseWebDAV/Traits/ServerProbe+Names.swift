import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider

// Which names a server takes and gives back as they were. Each is made by PUT in one folder and moved into another one, as
// servers may decode an address in a request's first line in another way than one in a header.

extension ServerProbe {
    private static let plain = FileName(trusted: Array("plain".utf8))
    /// What any name is made of that is escaped.
    private static let escaped = FileName(trusted: Array("‛2Eescaped‛5C".utf8))

    private static let tries: [(what: NameEscapes, names: [FileName])] = texts.map { (what, names) in
        (what, names.map { FileName(trusted: Array($0.utf8)) })
    }

    private static let texts: [(NameEscapes, [String])] = [
        (.controls, ["one\ntwo", "\u{1}\t\u{1B}\u{7F}"]), (.backslash, ["back\\slash"]), (.reserved, ["a\"b*c:d<e>f|g"]),
        (.delimiters, ["a#b", "a?b", "a;b", "a%25b%2Fc", "a&b+c=d@e"]), (.ends, [" first", "last ", "dot."]),
        (.hidden, [".hidden"]),
        // Some keep the one form of a letter where the other is not there.
        (.decomposed, ["\u{F6}", "o\u{308}"]), (.composed, ["\u{E9}"]),
    ]

    func tryNames(_ traits: inout ServerTraits) async throws(ProviderError) {
        let uploads = provider.uploads
        let (source, target) = (try await uploads.place(), try await uploads.place())
        for folder in [source, target] {
            guard try await makeFolder(folder) else { return }
        }
        let names = [ServerProbe.plain, ServerProbe.escaped] + ServerProbe.tries.flatMap(\.names)
        _ = try await concurrently(names, width: 4) { (name) async throws(ProviderError) -> Bool? in
            guard try await takes(.PUT, source + [name], body: RequestBody("one")) else { return false }
            return try await takes(.MOVE, source + [name], ["Destination": location.url(target + [name]), "Overwrite": "F"])
        }
        let listed = try await namesListed(in: target)
        for folder in [source, target] { _ = try await client.exchange(.DELETE, location.url(folder, isFolder: true)) }
        // A server that shows nothing at all of the folder tells nothing: it is to be tried again.
        guard listed.contains(ServerProbe.plain) else { return }
        traits.escapes = []
        for (what, names) in ServerProbe.tries where !listed.isSuperset(of: names) { traits.escapes?.insert(what) }
        traits.keepsEscapes = listed.contains(ServerProbe.escaped)
    }

    private func makeFolder(_ folder: [FileName]) async throws(ProviderError) -> Bool {
        try isDone(try await client.exchange(.MKCOL, location.url(folder, isFolder: true)))
    }

    /// A name that makes the server fail is none that it keeps.
    private func takes(
        _ method: HTTPMethod, _ path: [FileName], _ headers: HTTPHeaders = [:], body: RequestBody? = nil
    ) async throws(ProviderError) -> Bool {
        let reply = try await client.exchange(method, location.url(path), headers, body: body)
        return try isDone(reply)
    }

    /// Servers write control characters into what is no XML then.
    private func namesListed(in folder: [FileName]) async throws(ProviderError) -> Set<FileName> {
        do throws(ProviderError) {
            return try await listing(folder)
        } catch {
            guard error.code == .retry else { throw error }
        }
        for (what, names) in ServerProbe.tries where what == .controls {
            for name in names { _ = try await takes(.DELETE, folder + [name]) }
        }
        return try await listing(folder)
    }

    private func listing(_ folder: [FileName]) async throws(ProviderError) -> Set<FileName> {
        let body = "<propfind xmlns=\"DAV:\"><prop><resourcetype/></prop></propfind>"
        let rows = try await resources.propfind(folder, isFolder: true, depth: "1", body: body)
        return Set(rows.map(\.path).filter { $0.count == folder.count + 1 }.compactMap(\.last))
    }

    /// Whether it takes names for one that differ in case, or in the form of their letters, only; and whether a move that
    /// must not go over anything goes over a file with such a name.
    func tryTwins(_ traits: inout ServerTraits) async throws(ProviderError) {
        (traits.foldsNames, traits.overwritesTwins) = (false, false)
        let file = try await provider.uploads.place()
        let (folder, name) = (Array(file.dropLast()), file.last?.bytes ?? [])
        func place(_ ending: String) -> [FileName] {
            folder + [FileName(trusted: name + Array(ending.utf8))]
        }
        let first = place("-twin-\u{E9}")
        let others = [place("-TWIN-\u{E9}"), place("-twin-e\u{301}")]
        guard try await put("one", first).isSuccess else { return }
        for other in others where try await content(other) == "one" { traits.foldsNames = true }
        // rclone finds nothing under the other name, and goes over what is there all the same.
        let source = try await provider.uploads.place()
        _ = try await put("two", source)
        let move: HTTPHeaders = ["Destination": location.url(others[0]), "Overwrite": "F"]
        let isMoved = try await exchange(.MOVE, source, move).isSuccess
        if isMoved, try await content(first) != "one" { traits.overwritesTwins = true }
        for path in [source, others[0]] { _ = try await exchange(.DELETE, path) }
        _ = try await exchange(.DELETE, first)
    }
}
