package import PromiseWire
import Synchronization

/// An item that an application was given, by its bookmark: where it is, is known only while it is
/// being accessed. It cannot be made of text, and what a path is made of has no scope any more.
///
/// **Threads.** Any; `state` is a leaf.
public final class ScopedURL: Sendable {
    /// An access that is under way.
    public struct Access: Sendable {
        /// From the root of the domain.
        public let path: [UInt8]
        public let isReadOnly: Bool

        /// Something below a folder that was given.
        public func path(of name: [UInt8]) -> [UInt8] { path + [0x2F] + name }
    }

    private struct State {
        var bookmark: String
        var access: Access?
        var count = 0
        /// Of each start that the daemon counts.
        var scopes: [Int64] = []
    }

    package typealias Resolve = @Sendable (String) async throws(PromiseError) ->
        ResolvedBookmarkDocument

    private struct Stop { let call: @Sendable (Int64) -> Void }

    private let resolve: Resolve
    private let stop: Stop?
    private let state: Mutex<State>

    public convenience init(_ client: PromiseClient, bookmark: String, application: String?) {
        // Nobody waits for it: what is not told ends with the launch.
        self.init(
            bookmark: bookmark, stop: { scope in Task { try? await client.stopScope(scope) } }
        ) { (text: String) async throws(PromiseError) in
            try await client.resolve(bookmark: text, for: application)
        }
    }

    package init(
        bookmark: String, stop: (@Sendable (Int64) -> Void)? = nil, resolve: @escaping Resolve
    ) {
        self.resolve = resolve
        self.stop = stop.map { Stop(call: $0) }
        state = Mutex(State(bookmark: bookmark))
    }

    /// To be kept, for the next time: the renewed one when the first was stale.
    public var bookmark: String { state.withLock { $0.bookmark } }

    public var isAccessing: Bool { state.withLock { $0.count > 0 } }

    /// Counted: as many calls of `stopAccessing` end it. Throws when the bookmark leads nowhere.
    public func startAccessing() async throws(PromiseError) -> Access {
        let known: Access? = state.withLock { state in
            guard let access = state.access else { return nil }
            state.count += 1
            return access
        }
        if let known { return known }
        let found = try await resolve(bookmark)
        guard let bytes = found.pathBytes.flatMap({ PercentCoding.decode($0[...]) }) else {
            throw PromiseError(
                .local, "the bookmark leads nowhere: \(found.reason ?? "its item is gone")",
                exitStatus: 1)
        }
        let fresh = Access(
            path: Array(bytes.drop { $0 == 0x2F }), isReadOnly: found.isReadOnly)
        return state.withLock { state in
            if let renewed = found.renewed { state.bookmark = renewed }
            state.count += 1
            if let scope = found.scope { state.scopes.append(scope) }
            // Another call was faster.
            let access = state.access ?? fresh
            state.access = access
            return access
        }
    }

    /// False when nothing was under way.
    @discardableResult
    public func stopAccessing() -> Bool {
        let (isStopped, ended): (Bool, [Int64]) = state.withLock { state in
            guard state.count > 0 else { return (false, []) }
            state.count -= 1
            guard state.count == 0 else { return (true, []) }
            state.access = nil
            defer { state.scopes = [] }
            return (true, state.scopes)
        }
        for scope in ended { stop?.call(scope) }
        return isStopped
    }

    public func accessing<Value>(
        _ body: (Access) async throws -> Value
    ) async throws -> Value {
        let access = try await startAccessing()
        defer { stopAccessing() }
        return try await body(access)
    }
}
