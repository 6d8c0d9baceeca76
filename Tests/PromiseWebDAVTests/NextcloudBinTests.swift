import Foundation
import PromiseCore
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// What Nextcloud and ownCloud keep of what was removed, as the sources of their servers answer.
struct NextcloudBinTests {
    private static let base = "/cloud/remote.php/dav/files/ann/shared/"
    private static let nextcloud = "/cloud/remote.php/dav/trashbin/ann/trash/"
    private static let ownCloud = "/cloud/remote.php/dav/trash-bin/ann/"

    private static func row(_ place: String, _ time: Int, isOwnCloud: Bool, size: Int? = 4) -> String {
        let space = isOwnCloud ? "http://owncloud.org/ns" : "http://nextcloud.org/ns"
        let name = isOwnCloud ? "trashbin-delete-timestamp" : "trashbin-deletion-time"
        let kind = size == nil ? "<collection/>" : ""
        let length = size.map { "<getcontentlength>\($0)</getcontentlength>" } ?? ""
        return """
            <propstat><prop><resourcetype>\(kind)</resourcetype>\(length)\
            <getlastmodified>Sun, 09 Sep 2001 01:46:40 GMT</getlastmodified>\
            <trashbin-original-location xmlns="\(space)">\(place)</trashbin-original-location>\
            <\(name) xmlns="\(space)">\(time)</\(name)></prop><status>HTTP/1.1 200 OK</status></propstat>
            """
    }

    /// A bin, and a mounted folder in which there is what a MOVE has put back.
    private static func server(isOwnCloud: Bool, restores: Bool = true, there: Set<String> = []) -> ScriptedServer {
        let bin = isOwnCloud ? ownCloud : nextcloud
        let names = isOwnCloud ? ["70", "71", "72", "73", "74"] : ["a%20b.d9", "d.d8", "x.d7", "y.d6", "z.d5"]
        let present = Mutex(there)
        return ScriptedServer { request in
            switch (request.method, request.path) {
            case ("OPTIONS", _): reply("200 OK", ["DAV: 1", "Server: s"])
            case ("PROPFIND", bin):
                rows(
                    (bin, collection),
                    (bin + names[0], row("shared/d/a b", 2_000_000_000, isOwnCloud: isOwnCloud)),
                    (bin + names[1] + "/", row("shared/d", 2_000_000_009, isOwnCloud: isOwnCloud, size: nil)),
                    // Elsewhere, our own, and a lie.
                    (bin + names[2], row("elsewhere/x", 2_000_000_001, isOwnCloud: isOwnCloud)),
                    (bin + names[3], row("shared/.promisefs/uploads/y", 2_000_000_001, isOwnCloud: isOwnCloud)),
                    (bin + names[4], row("shared/../z", 2_000_000_001, isOwnCloud: isOwnCloud)),
                    (bin + "..%2F..", row("shared/w", 2_000_000_001, isOwnCloud: isOwnCloud)))
            case ("PROPFIND", base): rows((base, collection))
            case ("PROPFIND", let path) where path.hasPrefix(base):
                present.withLock { $0.contains(path) }
                    ? rows((path, collection)) : reply("404 Not Found", ["DAV: 1"])
            case ("MOVE", _):
                present.withLock { present in
                    if restores { present.insert(base + "d") }
                    return reply("201 Created")
                }
            default: reply("404 Not Found")
            }
        }
    }

    private func withBin(
        of server: ScriptedServer, _ body: (any ProviderBin) async throws -> Void
    ) async throws {
        defer { server.stop() }
        let provider = try await provider(server, remembering: ["keepsProperties"], at: Self.base)
        #expect(provider.capabilities.contains(.removedItems))
        let bin = try #require(provider.bin)
        try await body(bin)
    }

    @Test(arguments: [false, true]) func whatWasRemovedBelowTheMountedFolderIsListed(isOwnCloud: Bool) async throws {
        try await withBin(of: Self.server(isOwnCloud: isOwnCloud)) { bin in
            let items = try await bin.list()
            #expect(items.map { $0.path.map(\.display) } == [["d"], ["d", "a b"]])
            #expect(items.map(\.kind) == [.folder, .file] && items.map(\.size) == [0, 4])
            #expect(items.first?.removalTime == Timestamp(seconds: 2_000_000_009, nanoseconds: 0))
            #expect(items.first?.modificationTime == Timestamp(seconds: 1_000_000_000, nanoseconds: 0))
        }
    }

    @Test(arguments: [false, true]) func whatWasRemovedIsBroughtBackToWhereItWas(isOwnCloud: Bool) async throws {
        let server = Self.server(isOwnCloud: isOwnCloud)
        try await withBin(of: server) { bin in
            let items = try await bin.list()
            // Its folder is gone: Nextcloud would put it into the user's root.
            let gone = await #expect(throws: ProviderError.self) { try await bin.restore(items[1]) }
            #expect(gone?.code == .conflict && gone?.message.contains("its folder is gone") == true)
            try await bin.restore(items[0])
            // Nextcloud would give it another name.
            let taken = await #expect(throws: ProviderError.self) { try await bin.restore(items[0]) }
            #expect(taken?.code == .conflict && taken?.message.contains("its name is taken") == true)
        }
        let moves = server.requests.filter { $0.hasPrefix("MOVE") }
        #expect(moves.count == 1 && moves[0].contains("Overwrite: F\r\n"), "\(moves)")
        let (from, to) =
            isOwnCloud
            ? (Self.ownCloud + "71 ", "/cloud/remote.php/dav/files/ann/shared/d\r\n")
            : (Self.nextcloud + "d.d8 ", "/cloud/remote.php/dav/trashbin/ann/restore/d.d8\r\n")
        #expect(moves.allSatisfy { $0.hasPrefix("MOVE " + from) && $0.contains(to) }, "\(moves)")
    }

    /// Nextcloud answers 201 when it could not.
    @Test func whatIsNotThereAfterwardsHasNotComeBack() async throws {
        try await withBin(of: Self.server(isOwnCloud: false, restores: false)) { bin in
            let items = try await bin.list()
            let found = await #expect(throws: ProviderError.self) { try await bin.restore(items[0]) }
            #expect(found?.code == .refused && found?.message.contains("it is not there") == true)
        }
    }

    @Test func whatIsNoNameOfTheBinIsNotMoved() async throws {
        let server = Self.server(isOwnCloud: false)
        try await withBin(of: server) { bin in
            for identifier in ["trashbin/..", "trashbin/a/b", "files/a", "trashbin/%2E%2E", "trashbin/a%2Fb", ""] {
                let item = BinItem(
                    identifier: identifier, path: [FileName("d")!], kind: .file, size: 1, modificationTime: nil,
                    removalTime: .zero)
                let found = await #expect(throws: ProviderError.self) { try await bin.restore(item) }
                #expect(found?.code == .notFound)
            }
        }
        #expect(!server.requests.contains { $0.hasPrefix("MOVE") })
    }

    /// It was brought back under another name, or was said to be nowhere.
    @Test func aPlaceInTheBinMayBeginAndEndWithSpaces() throws {
        let document = """
            <multistatus xmlns="DAV:"><response><href>/b/1</href>\(Self.row(" d/a ", 1, isOwnCloud: false))</response>\
            </multistatus>
            """
        let rows = try #require(MultiStatusParser.parse(Data(document.utf8)))
        #expect(rows.first?.trash?.place == " d/a ")
    }

    @Test func aServerWithoutABinSaysSo() async throws {
        let server = ScriptedServer { request in
            switch (request.method, request.path) {
            case ("OPTIONS", _): reply("200 OK", ["DAV: 1", "Server: s"])
            case ("PROPFIND", Self.base): rows((Self.base, collection))
            default: reply("404 Not Found")
            }
        }
        try await withBin(of: server) { bin in
            let found = await #expect(throws: ProviderError.self) { try await bin.list() }
            #expect(found?.code == .refused)
        }
        let other = ScriptedServer { request in
            request.method == "OPTIONS" ? reply("200 OK", ["DAV: 1", "Server: s"]) : rows((request.path, collection))
        }
        defer { other.stop() }
        let provider = try await provider(other, remembering: ["keepsProperties"])
        #expect(provider.bin == nil && !provider.capabilities.contains(.removedItems))
    }
}
