import PromiseCore
import PromiseKit
import PromiseWire
import Synchronization

/// The picker as a page: the machine runs here, the page shows it.
public final class PickerSite: WebSite {
    private struct State {
        var machine: PickerMachine?
        var outcome: PickerOutcome?
        var version = 0
        /// The page has seen the end.
        var isOver = false
        /// Providers' pages that were asked for and not yet shown, by what their address ends in.
        var frames: [String: [UInt8]] = [:]
    }

    private static let patience = Duration.seconds(20)
    private static let pictureSideMax = 1024

    let session: PickerSession
    let data: MountedData
    let request: PickerRequest
    private let state = Mutex(State())

    public init(_ session: PickerSession, _ data: MountedData, _ request: PickerRequest) {
        self.session = session
        self.data = data
        self.request = request
    }

    public var title: String { TerminalText.title(request) }
    public var script: String { PickerScript.text }

    /// `opened` is given the address; `entered` is called when the page was opened there, perhaps
    /// more than once. A page that nobody uses for `idleMax` is cancelled.
    public func run(
        idleMax: Duration, opened: (String) async -> Void, entered: @escaping @Sendable () -> Void
    ) async throws -> PickerOutcome {
        let server = try await WebServer(self)
        let serving = Task { try await server.run() }
        let watching = Task { [session] in
            while !Task.isCancelled {
                try await Task.sleep(for: .seconds(1))
                if server.isEntered { entered() }
                if server.idle > idleMax { session.post(.cancel) }
            }
        }
        defer {
            serving.cancel()
            watching.cancel()
        }
        await opened(server.address)
        let outcome = await session.run(request) { [self] machine in
            state.withLock { state in
                state.machine = machine
                state.version += 1
            }
        }
        state.withLock { state in
            state.outcome = outcome
            state.version += 1
        }
        // So that the page can say so.
        for _ in 0..<200 where !state.withLock({ $0.isOver }) {
            try? await Task.sleep(for: .milliseconds(10))
        }
        return outcome
    }

    /// Of a page that is left open nothing comes but this, for ever.
    public func isUse(_ request: WebRequest) -> Bool { request.path != "/state" }

    public func answer(_ request: WebRequest) async -> WebResponse {
        switch (request.method, request.path) {
        case ("GET", "/state"):
            return await stateDocument(after: Int(request.query["after"] ?? "") ?? -1)
        case ("GET", "/items"): return await items(request)
        case ("GET", "/thumbnail"): return await thumbnail(request)
        case ("GET", "/pages"): return await pages()
        case ("POST", "/page"): return await page(request)
        case ("POST", "/picked"): return await picked(request)
        case ("GET", let path) where path.hasPrefix(WebDoor.framePrefix): return frame(path)
        case ("GET", "/bye"):
            state.withLock { $0.isOver = true }
            return .text("", status: 200)
        case ("POST", "/event"):
            guard let document = WireCoding.decode(PickerEventDocument.self, from: request.body),
                let event = document.event
            else { return .text("no such event", status: 400) }
            session.post(event)
            return .json(["taken": true])
        default: return .text("no such page", status: 404)
        }
    }

    /// Waits for something new: the page asks again at once.
    private func stateDocument(after version: Int) async -> WebResponse {
        let end = ContinuousClock.now + PickerSite.patience
        while true {
            let (now, machine, outcome) = state.withLock { ($0.version, $0.machine, $0.outcome) }
            if let machine, now > version || ContinuousClock.now > end {
                return .json(PickerStateDocument(machine, version: now, outcome: outcome))
            }
            guard (try? await Task.sleep(for: .milliseconds(10))) != nil else {
                return .text("", status: 503)
            }
        }
    }

    private func items(_ request: WebRequest) async -> WebResponse {
        guard let machine = state.withLock({ $0.machine }), let listing = machine.listing else {
            return .text("nothing is listed", status: 404)
        }
        let offset = max(0, Int(request.query["offset"] ?? "") ?? 0)
        let limit = max(1, min(500, Int(request.query["limit"] ?? "") ?? 200))
        do {
            let page = try await data.list(listing, offset: offset, limit: limit)
            return .json(
                PickerItemsDocument(
                    generation: machine.generation, total: page.total, reason: page.reason,
                    items: page.items.map {
                        PickerItemDocument($0, showsPath: machine.folder == nil)
                    }))
        } catch {
            return .json(
                PickerItemsDocument(
                    generation: machine.generation, total: 0, reason: "\(error)", items: []))
        }
    }

    /// Under an address that is good once.
    func keepFrame(_ page: [UInt8]) -> String {
        let name = WebDoor.secret()
        state.withLock { $0.frames = [name: page] }
        return WebDoor.framePrefix + name
    }

    private func frame(_ path: String) -> WebResponse {
        let name = String(path.dropFirst(WebDoor.framePrefix.count))
        guard let page = state.withLock({ $0.frames.removeValue(forKey: name) }) else {
            return .text("no such page", status: 404)
        }
        var response = WebResponse(type: "text/html; charset=utf-8", body: page)
        response.isFrame = true
        return response
    }

    /// A PNG of a size that a browser can bear, or none.
    private func thumbnail(_ request: WebRequest) async -> WebResponse {
        guard let domain = request.query["domain"], let text = request.query["path"],
            let path = PercentCoding.decode(text[...]),
            let picture = try? await data.client(of: domain).thumbnail(
                of: Array(path.drop { $0 == 0x2F }), size: 256),
            PickerSite.isBearable(picture)
        else { return WebResponse(status: 204, type: "image/png", body: []) }
        return WebResponse(type: "image/png", body: picture)
    }

    /// The header of a PNG says how large it is (W3C, PNG, 11.2.1): a few bytes can stand for
    /// gigabytes of pixels.
    public static func isBearable(_ picture: [UInt8]) -> Bool {
        let signature: [UInt8] = [
            0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52,
        ]
        guard picture.count >= 33, picture.starts(with: signature) else { return false }
        func number(at start: Int) -> Int {
            picture[start..<(start + 4)].reduce(0) { $0 << 8 | Int($1) }
        }
        return (1...pictureSideMax).contains(number(at: 16))
            && (1...pictureSideMax).contains(number(at: 20))
    }
}
