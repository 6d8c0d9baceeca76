import FoundationEssentials
import Logging
import NIOHTTP1
import PromiseCore
import PromiseExtension
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import PromiseWebDAV
import Synchronization

/// Keeps `rclone serve webdav` running, and asks the storage behind it, past all that rclone remembers.
///
/// rclone keeps listings, and would compare a version with one of them and write over what others have stored since. So before
/// each request that depends on what is there it is told to forget the folder, by its remote control.
///
/// It shows a folder that is not there as one that holds nothing, and answers 404 to some requests that failed. So neither is
/// believed before the storage itself has said so.
final class RcloneRelay: ServerRelay {
    /// A remote may look at its network before it listens.
    private static let startLimit = Duration.seconds(60)
    private static let rootFreshness = Duration.seconds(5)
    private static let callLimit = Duration.seconds(300)
    /// Three pings without an answer end it: before whoever waits gives up after a minute.
    private static let pingPause = Duration.seconds(5)
    private static let pingLimit = Duration.seconds(10)

    private let location: RcloneLocation
    private let station = RcloneStation()
    private let process: ExtensionProcess
    private let transport: HTTPTransport
    private let clock: any TimeSource
    /// When the root was last seen.
    private let rootSeen = Mutex<Duration?>(nil)
    /// The name of a file that was in it then: to look at one file costs the same however many there are.
    private let rootFile = Mutex(RootFile())

    init(
        _ location: RcloneLocation, program: RcloneProgram, stateFolder: [UInt8]?, logger: Logger, clock: any TimeSource
    ) throws(ProviderError) {
        self.location = location
        self.clock = clock
        transport = try HTTPTransport(server: "rclone", trust: .system)
        let options = [
            "serve", "webdav", location.text, "--addr=127.0.0.1:0", "--rc", "--rc-addr=127.0.0.1:0",
            // A PUT is answered when the remote has what was sent.
            "--vfs-cache-mode=off", "--dir-cache-time=1h", "--poll-interval=0",
            "--ask-password=false", "--log-level=NOTICE", "--retries=1",
        ]
        let mark = "PROMISEFS_RCLONE=\(String(decoding: stateFolder ?? [], as: UTF8.self))"
        let station = station
        var limits = ExtensionLife.Limits()
        limits.start = RcloneRelay.startLimit
        let serving = ServingProgram(
            path: program.path, arguments: options.map { Array($0.utf8) }, kind: "rclone", shortName: location.text,
            title: "rclone for '\(location.text)'", record: stateFolder.map { $0 + Array("/rclone.session".utf8) } ?? [],
            mark: Array(mark.utf8), environment: { station.renew($0) + [Array(mark.utf8)] },
            listens: { station.address != nil }, hear: { station.hear($0) }, trouble: { station.trouble })
        process = try ExtensionProcess(serving, limits: limits, logger: logger, clock: clock)
    }

    func stop() { process.stop() }

    /// What it said last of what went wrong, as the end of a sentence.
    var words: String { station.trouble.map { " (rclone says: \($0))" } ?? "" }

    // MARK: The relay

    func station(lookingAt paths: [String]) async throws(ProviderError) -> ServerStation {
        for path in paths {
            // Of a place it also forgets what the folder above holds.
            _ = try await ask("vfs/forget", ["dir": RcloneRelay.place(path)])
        }
        let address = try await address()
        return ServerStation(origin: address.files, authorization: address.authorization)
    }

    private func address() async throws(ProviderError) -> RcloneStation.Address {
        try await process.ready()
        guard let address = station.address else { throw ProviderError(.retry, "rclone is being started again") }
        return address
    }

    // MARK: Asking the storage

    private struct Entry: Decodable, Sendable {
        var name: String?
        enum CodingKeys: String, CodingKey { case name = "Name" }
    }
    /// Of names alone: some remotes ask for the time of each file by a request of its own.
    private static let namesOnly = #"{"noModTime": true, "noMimeType": true}"#
    /// rclone lists the folder of what is no file, to see whether it is a folder.
    private static let filesOnly = #"{"filesOnly": true, "noModTime": true, "noMimeType": true}"#
    private struct Listing: Decodable, Sendable { var list: [Entry] }
    private struct Status: Decodable, Sendable { var item: Entry? }
    private struct About: Decodable, Sendable {
        var total: UInt64?
        var free: UInt64?
    }
    private struct Problem: Decodable { var error: String? }

    /// Throws `.offline` unless the folder that is mounted is there. rclone would make it anew, and store there what is written.
    func checkRoot(isFresh: Bool = false) async throws(ProviderError) {
        let now = clock.uptime()
        if !isFresh, let seen = rootSeen.withLock({ $0 }), now - seen < RcloneRelay.rootFreshness { return }
        if try await !isRootFileThere() {
            let question = ["fs": location.text, "remote": "", "opt": RcloneRelay.filesOnly]
            guard let answer = try await ask("operations/list", question) else {
                rootSeen.withLock { $0 = nil }
                rootFile.withLock { $0 = RootFile() }
                throw ProviderError(.offline, "rclone finds no folder at '\(location.text)': make it by 'rclone mkdir'")
            }
            let listing: Listing? = await read(answer)
            rootFile.withLock { $0.choose(from: listing?.list.map { $0.name ?? "" } ?? []) }
        }
        rootSeen.withLock { $0 = now }
    }

    /// The folder is there when the file is that was seen in it. False says nothing of the folder.
    private func isRootFileThere() async throws(ProviderError) -> Bool {
        guard let name = rootFile.withLock({ $0.name }) else { return false }
        let question = ["fs": location.text, "remote": name, "opt": RcloneRelay.filesOnly]
        do throws(ProviderError) {
            let status: Status? = await read(try await ask("operations/stat", question))
            let isThere = status?.item != nil
            rootFile.withLock { isThere ? $0.found() : $0.missed(name) }
            return isThere
        } catch where error.code != .cancelled {
            // A file may be listed whose looking at is refused. Whether the folder is there the
            // listing says.
            rootFile.withLock { $0.refused(name) }
            return false
        }
    }

    /// Throws `.retry` unless the storage itself says that there is nothing. `path`: as in URLs.
    func checkGone(_ path: String) async throws(ProviderError) {
        try await checkRoot(isFresh: true)
        let place = RcloneRelay.place(path)
        guard !place.isEmpty else { return }
        let answer = try await ask("operations/stat", ["fs": location.text, "remote": place])
        if let status: Status = await read(answer) {
            if status.item == nil { return }
            if try await !isListed(place) { return }
        }
        throw ProviderError(.retry, "rclone did not find '\(place)', which is there\(words)")
    }

    /// A remote may find by one name what it has under another one, which differs in case only.
    private func isListed(_ place: String) async throws(ProviderError) -> Bool {
        let parts = place.split(separator: "/")
        let folder = parts.dropLast().joined(separator: "/")
        let question = ["fs": location.text, "remote": folder, "opt": RcloneRelay.namesOnly]
        guard let name = parts.last, let answer = try await ask("operations/list", question),
            let listing: Listing = await read(answer)
        else { return true }
        return listing.list.contains { $0.name?.utf8.elementsEqual(name.utf8) == true }
    }

    /// The same of a folder that holds nothing.
    func checkEmpty(_ path: String) async throws(ProviderError) {
        let place = RcloneRelay.place(path)
        let question = ["fs": location.text, "remote": place, "opt": RcloneRelay.namesOnly]
        guard let answer = try await ask("operations/list", question) else {
            try await checkGone(path)
            throw ProviderError(.notFound, "'\(place)' is not there")
        }
        guard let listing: Listing = await read(answer), listing.list.isEmpty else {
            throw ProviderError(.retry, "rclone does not list '\(place)', which holds something\(words)")
        }
    }

    /// Nil where the remote does not tell.
    func quota() async -> Quota? {
        guard let answer = try? await ask("operations/about", ["fs": location.text]),
            let about = try? JSONDecoder().decode(About.self, from: answer), let total = about.total, let free = about.free
        else { return nil }
        return Quota(total: total, available: free)
    }

    /// A listing may be of megabytes: not on the thread of the connections, where calls run.
    private func read<Value: Decodable & Sendable>(_ answer: Data?) async -> Value? {
        guard let answer else { return nil }
        return await withTaskExecutorPreference(globalConcurrentExecutor) {
            try? JSONDecoder().decode(Value.self, from: answer)
        }
    }

    /// As the remote has it.
    private static func place(_ path: String) -> String {
        let names = String(decoding: PercentEncoding.decoded(path) ?? Array(path.utf8), as: UTF8.self)
        return names.split(separator: "/").joined(separator: "/")
    }

    /// A call of the remote control; nil: the folder is not there.
    private func ask(_ command: String, _ question: [String: String]) async throws(ProviderError) -> Data? {
        let address = try await address()
        let watch = Task { [weak self] in
            while (try? await Task.sleep(for: RcloneRelay.pingPause)) != nil { await self?.ping(address) }
        }
        defer { watch.cancel() }
        let reply: HTTPReply
        do throws(ProviderError) {
            reply = try await call(address, command, question, limit: RcloneRelay.callLimit)
            process.answered()
        } catch {
            throw ProviderError(error.code == .cancelled ? .cancelled : .retry, error.message)
        }
        guard !reply.isSuccess else { return reply.body }
        let reason = (try? JSONDecoder().decode(Problem.self, from: reply.body))?.error ?? "it answers \(reply.status)"
        if reply.status == 404, reason.contains("directory not found") { return nil }
        throw ProviderError(.retry, "rclone cannot look at '\(location.text)': \(RcloneWords.sentence(reason))")
    }

    /// While a call waits: a remote that is slow is no rclone that hangs, which answers nothing.
    private func ping(_ address: RcloneStation.Address) async {
        do throws(ProviderError) {
            _ = try await call(address, "rc/noop", [:], limit: RcloneRelay.pingLimit)
            process.answered()
        } catch {
            // Of one that was started again meanwhile it says nothing.
            if error.code != .cancelled, station.address == address { process.fellSilent() }
        }
    }

    private func call(
        _ address: RcloneStation.Address, _ command: String, _ question: [String: String], limit: Duration
    ) async throws(ProviderError) -> HTTPReply {
        guard let text = try? JSONEncoder().encode(question) else { throw ProviderError(.permanent, "there is no such question") }
        let headers: HTTPHeaders = ["Authorization": address.authorization, "Content-Type": "application/json"]
        let response = try await transport.send(
            .POST, "\(address.control)/\(command)", headers, body: RequestBody(String(decoding: text, as: UTF8.self)),
            timeout: limit, isRepeatable: true, takesLong: true)
        return try await transport.whole(response, .POST, isShort: false)
    }
}

/// By which file the folder that is mounted is known to be there.
private struct RootFile {
    /// So many are tried that cannot be looked at. Then the folder is listed each time.
    private static let refusalMax = 8

    private(set) var name: String?
    /// What could be listed and not looked at, since one could be.
    private var refusals: Set<String> = []

    mutating func choose(from names: [String]) {
        guard refusals.count < RootFile.refusalMax else { return }
        // Who removes all of them begins with the first. A name that is no text is not found by it.
        name = names.last {
            !$0.isEmpty && !$0.contains("\u{FFFD}") && !refusals.contains($0)
        }
    }

    mutating func found() { refusals.removeAll() }

    mutating func missed(_ name: String) {
        if self.name == name { self.name = nil }
    }

    mutating func refused(_ name: String) {
        missed(name)
        refusals.insert(name)
    }
}
