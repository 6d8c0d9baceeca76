import Logging
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseTestSupport
import PromiseWebDAV
import Synchronization
import Testing

/// Large content in parts: what broke off is gone on with, and never with another content, nor on what the server has lost.
struct PartTests {
    private static let root = ItemReference(identifier: ItemIdentifier("/"), path: [])
    private static let part = 8 << 10
    private static let size = 4 * part + 1000
    private static let item = NewItem(
        name: FileName("large")!, kind: .file, metadata: Metadata(mode: 0o644, owner: 0, group: 0, modificationTime: .zero))

    /// Each part is another.
    private static func content(_ letter: String) -> [UInt8] {
        let first = letter.utf8.first ?? 0
        return (0..<5).flatMap { [UInt8](repeating: first + UInt8($0), count: min(part, size - $0 * part)) }
    }

    /// A first attempt that is cut after two more parts, then what `between` does, then another one by a new provider.
    private func uploaded(
        _ conduct: PartServer.Conduct = .writesParts, then second: [UInt8] = content("a"), isCut: Bool = true,
        between: @Sendable (inout PartServer.State) -> Void = { _ in }
    ) async throws -> (server: PartServer, requests: [String], sent: Int) {
        let part = PartServer(conduct)
        let server = part.start()
        defer { server.stop() }
        let folder = try TemporaryFolder("parts")
        let writing: PartWriting = conduct == .joinsChunks ? .chunks : conduct == .patches ? .partialUpdate : .contentRange
        let traits: Set<String> = ["hasRanges", "moveKeepsTag", "tagsTellContent", "honoursOverwrite"]
        if isCut {
            part.state.withLock { $0.partsLeft = writing == .chunks ? 3 : 2 }
            let first = try await provider(
                server, remembering: traits, in: folder, at: part.base, partWriting: writing, partByteCount: UInt64(Self.part))
            await #expect(throws: ProviderError.self) {
                _ = try await first.create(Self.item, in: Self.root, contents: ConformanceSource(Self.content("a")))
            }
            #expect(part.state.withLock { $0.sentByteCount } == 3 * Self.part)
        }
        part.state.withLock { state in
            (state.partsLeft, state.sentByteCount) = (nil, 0)
            between(&state)
        }
        let before = server.requests.count
        let next = try await provider(
            server, remembering: traits, in: folder, at: part.base, partWriting: writing, partByteCount: UInt64(Self.part))
        do throws(ProviderError) {
            let source: ConformanceSource
            do { source = try ConformanceSource(second) } catch { throw ProviderError(.permanent, "\(error)") }
            _ = try await next.create(Self.item, in: Self.root, contents: source)
        } catch {
            #expect(error.code == .retry)
        }
        return (part, Array(server.requests.dropFirst(before)), part.state.withLock { $0.sentByteCount })
    }

    private func file(_ server: PartServer) -> [UInt8]? {
        server.state.withLock { $0.files[server.base + "large"] }.map { Array($0.utf8) }
    }

    /// A file goes on as a copy: a request that broke off may still be written into the first one, also after it was moved.
    @Test(arguments: [PartServer.Conduct.writesParts, .patches, .joinsChunks])
    func whatBrokeOffIsGoneOnWithByTheNextProvider(conduct: PartServer.Conduct) async throws {
        let (server, requests, sent) = try await uploaded(conduct)
        #expect(requests.contains { $0.hasPrefix("COPY") } == (conduct != .joinsChunks))
        #expect(sent == Self.size - 3 * Self.part, "what had arrived is not sent again")
        #expect(file(server) == Self.content("a"))
        #expect(server.state.withLock { $0.files.count } == 1, "nothing is left aside")
    }

    /// One that arrives after the move would change the file, and its version with it.
    @Test(arguments: [PartServer.Conduct.writesParts, .patches])
    func nothingIsAddedWhereAPartMayBeOnItsWay(conduct: PartServer.Conduct) async throws {
        let (_, requests, _) = try await uploaded(conduct)
        let place = try #require(requests.first { $0.hasPrefix("COPY ") }).dropFirst(5)
        #expect(!["PUT ", "PATCH ", "MOVE "].contains { requests.contains($0 + place) })
    }

    /// Bytes of the old one may be on their way to its place still.
    @Test func anotherContentGoesToAnotherPlace() async throws {
        let (server, requests, sent) = try await uploaded(then: Self.content("A"))
        #expect(sent == Self.size && file(server) == Self.content("A"))
        let places = Set(requests.filter { $0.hasPrefix("PUT") }.compactMap { $0.split(separator: " ").dropFirst().first })
        let removed = requests.filter { $0.hasPrefix("DELETE") }.compactMap { $0.split(separator: " ").dropFirst().first }
        #expect(places.count == 1 && Set(removed).isDisjoint(with: places) && !removed.isEmpty)
    }

    /// A server that lost power has the file in its size, and zeros in it.
    @Test func whatTheServerHasLostIsNotGoneOnWith() async throws {
        let (server, _, sent) = try await uploaded { state in
            state.files = state.files.mapValues { String(repeating: "\0", count: $0.utf8.count) }
        }
        #expect(sent == Self.size && file(server) == Self.content("a"))
    }

    @Test func whatSomebodyRemovedBeginsAnew() async throws {
        let (server, _, sent) = try await uploaded { $0.files = [:] }
        #expect(sent == Self.size && file(server) == Self.content("a"))
    }

    /// Written on, it would be a file with a hole.
    @Test(arguments: [PartServer.Conduct.writesParts, .fillsWhatIsMissing])
    func aFileThatGoesInTheMiddleIsNeverMoved(conduct: PartServer.Conduct) async throws {
        let (server, requests, _) = try await uploaded(conduct, isCut: false) { $0.losesFiles = true }
        #expect(file(server) == nil && !requests.contains { $0.hasPrefix("MOVE") })
    }

    /// As after a change of servers that nobody was told of.
    @Test func aServerThatReplacesTheFileByThePartGetsNoFurtherParts() async throws {
        let (server, requests, _) = try await uploaded(.replacesByThePart, isCut: false)
        #expect(file(server) == nil && !requests.contains { $0.hasPrefix("MOVE") })
    }

    // MARK: What a server does

    @Test(arguments: [
        ("https://host/remote.php/dav/files/u/", "https://host/remote.php/dav/uploads/u/"),
        ("http://host:8/a/dav/files/%C3%BC%40x/in/it", "http://host:8/a/dav/uploads/%C3%BC%40x/"),
        ("https://host/remote.php/webdav/", nil), ("https://host/dav/files/", nil),
    ])
    func partsGoBesideTheFilesOfTheUser(address: String, chunks: String?) throws {
        #expect(try WebDAVLocation(parsing: "webdav+" + address).chunkURL == chunks)
    }

    private func isSaidToLackParts(_ conduct: PartServer.Conduct, _ remembered: Bool = false) async throws -> Bool {
        let part = PartServer(conduct)
        let server = part.start()
        defer { server.stop() }
        let provider =
            remembered
            ? try await provider(server, remembering: ["hasRanges"], partWriting: nil)
            : try WebDAVProvider(
                location: WebDAVLocation(parsing: "webdav+http://127.0.0.1:\(server.port)\(part.base)"),
                credentials: CredentialSource(), stateFolder: nil,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        if !remembered { try await provider.connect() }
        return provider.limitations.contains { $0.contains("no parts of files") }
    }

    @Test(arguments: PartServer.Conduct.allCases)
    func partsAreSentOnlyWhereTheyAreWritten(conduct: PartServer.Conduct) async throws {
        let lacks = try await isSaidToLackParts(conduct)
        #expect(lacks == ![.writesParts, .patches, .joinsChunks].contains(conduct))
    }

    @Test func whatAnOlderVersionDidNotTryIsTried() async throws {
        #expect(try await isSaidToLackParts(.takesNone, true))
        #expect(try await !isSaidToLackParts(.writesParts, true))
    }
}
