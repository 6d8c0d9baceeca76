import Glibc
import NIOCore
public import PromiseWire
import Synchronization

/// What a claim wants of one item: bytes of its path from the root of the domain, and how.
public struct FileAccessIntent: Sendable, Hashable {
    /// As NSFileCoordinator.ReadingOptions; docs/COORDINATION.md says what each means here.
    public enum ReadingOption: String, Sendable, CaseIterable {
        case withoutChanges, resolvesSymbolicLink, immediatelyAvailableMetadataOnly, forUploading
    }

    /// As NSFileCoordinator.WritingOptions.
    public enum WritingOption: String, Sendable, CaseIterable {
        case forDeleting, forMoving, forMerging, forReplacing, contentIndependentMetadataOnly
    }

    public let path: [UInt8]
    public let isWriting: Bool
    let options: [String]

    public static func reading(_ path: [UInt8], _ options: ReadingOption...) -> FileAccessIntent {
        FileAccessIntent(path: path, isWriting: false, options: options.map(\.rawValue))
    }

    public static func writing(_ path: [UInt8], _ options: WritingOption...) -> FileAccessIntent {
        FileAccessIntent(path: path, isWriting: true, options: options.map(\.rawValue))
    }

    /// With the options by name, as a command line has them; the daemon says which it does not know.
    public init(path: [UInt8], isWriting: Bool, options: [String]) {
        self.path = path
        self.isWriting = isWriting
        self.options = options
    }

    var document: ClaimDocument.Item {
        .init(path: "/" + PercentCoding.encode(path), access: isWriting ? "write" : "read", options: options)
    }
}

/// Reads and writes items so that nobody disturbs it and it disturbs nobody: other coordinators wait, presenters are asked to
/// save and to let go, and programs on the mount that know nothing of it wait as well.
///
///     let coordinator = FileCoordinator(client)
///     try await coordinator.coordinate([.writing(Array("report.txt".utf8))]) { access in
///         try append("a line", to: access.items[0].path)
///     }
///
/// An item that is read `.forUploading` has a `snapshot`: the path of a copy that nobody writes, of a folder as one ZIP archive.
/// What is to be written need not be there yet: a new document, or the place that something is moved to. The claim is about the
/// place then. A claim ends with the closure, and in any case with this process.
public struct FileCoordinator: Sendable {
    /// The variable by which a coordinated command hands its purpose to what it starts.
    public static let purposeVariable = "PROMISEFS_PURPOSE"
    /// Of the coordinated command that this process belongs to, if there is one.
    public static var inheritedPurpose: String? { said(getenv(purposeVariable).map { String(cString: $0) }) }

    /// An empty purpose is none.
    static func said(_ purpose: String?) -> String? { purpose == "" ? nil : purpose }
    /// The variable by which a coordinated command hands on which claims it runs in, as `DOMAIN:NUMBER` with blanks between.
    public static let claimsVariable = "PROMISEFS_CLAIMS"
    /// The claims that this task runs in, in the same form.
    @TaskLocal static var surrounding: [String] = getenv(claimsVariable).map { variable in
        String(cString: variable).split(separator: " ").map { String($0) }
    } ?? []
    public let client: PromiseClient
    /// Claims and presenters of one purpose never wait for each other.
    public let purpose: String?

    /// `purpose` nil: `inheritedPurpose`.
    public init(_ client: PromiseClient, purpose: String? = nil) {
        self.client = client
        self.purpose = FileCoordinator.said(purpose) ?? FileCoordinator.inheritedPurpose
    }

    /// Runs `body` with all of the items at once. Throws what `body` throws, or `PromiseError`: of status 4 when the items were
    /// not free within `timeout` (nil: for ever), of 1 when waiting would never end. Cancelling the task gives the claim up.
    ///
    /// What `body` is given says where the items are when it begins, whatever was moved meanwhile. A claim may end before
    /// `body` does, with its daemon: `lost` is called then, from any thread, and the call throws of status 4 after `body`.
    public func coordinate<Value>(
        _ intents: [FileAccessIntent], timeout: Duration? = nil, lost: @escaping @Sendable () -> Void = {},
        _ body: (GrantedClaimDocument) async throws -> Value
    ) async throws -> Value {
        try await access(intents, isPreparation: false, timeout: timeout, lost: lost, body)
    }

    /// As NSFileCoordinator's method of this name: presenters of all items are asked at once and once, and not again by what
    /// `body` coordinates of them. Nobody is kept out by it: each item is still to be coordinated, within `body`.
    ///
    /// What presenters gave up is theirs again when `body` has ended. Throws as `coordinate`.
    public func prepare<Value>(
        _ intents: [FileAccessIntent], timeout: Duration? = nil, _ body: (GrantedClaimDocument) async throws -> Value
    ) async throws -> Value {
        try await access(intents, isPreparation: true, timeout: timeout, lost: {}, body)
    }

    private func access<Value>(
        _ intents: [FileAccessIntent], isPreparation: Bool, timeout: Duration?, lost: @escaping @Sendable () -> Void,
        _ body: (GrantedClaimDocument) async throws -> Value
    ) async throws -> Value {
        let seconds = timeout.map { Double($0.components.seconds) + Double($0.components.attoseconds) / 1e18 }
        var request = ClaimDocument(items: intents.map(\.document), purpose: purpose, timeoutSeconds: seconds)
        if isPreparation { request.isPreparation = true }
        let prefix = client.domain + ":"
        request.within = FileCoordinator.surrounding.filter { $0.hasPrefix(prefix) }
            .compactMap { UInt64($0.dropFirst(prefix.count)) }
        // The end of the request's body is the end of the access.
        let (content, ending) = AsyncStream.makeStream(of: ByteBuffer.self)
        defer { ending.finish() }
        ending.yield(ByteBuffer(bytes: WireCoding.bytes(request) + [0x0A]))
        let access = Access(try await client.stream("POST", "accesses", content), lost: lost)
        return try await withTaskCancellationHandler {
            guard let granted = try await access.granted() else {
                try Task.checkCancellation()
                throw PromiseError(
                    .brokenReply, "the daemon of '\(client.domain)' ended before the claim was granted", exitStatus: 4)
            }
            let outcome: Result<Value, any Error>
            let around = FileCoordinator.surrounding + [prefix + "\(granted.claim)"]
            do {
                outcome = .success(try await FileCoordinator.$surrounding.withValue(around) { try await body(granted) })
            } catch {
                outcome = .failure(error)
            }
            // Read to its end: then the claim is no more, and the connection can be used again.
            let wasHeld = access.giveBack()
            ending.finish()
            let endsInOrder = await access.end()
            let value = try outcome.get()
            guard wasHeld, endsInOrder else {
                throw PromiseError(
                    .brokenReply, "the claim ended before it was given back: its daemon has gone", exitStatus: 4)
            }
            return value
        } onCancel: {
            access.cancel()
        }
    }

    /// One access as the daemon tells of it, read by a task of its own, so that its end is heard of at once.
    private final class Access: Sendable {
        private enum Phase { case waiting, held, givenBack, lost }
        private let grants: AsyncThrowingStream<GrantedClaimDocument, any Error>
        private let reader: Task<Bool, Never>
        private let phase: Held

        private final class Held: Sendable {
            private let phase = Mutex(Phase.waiting)

            /// True when it was `from`, and is `to` now.
            func change(_ from: Phase, to: Phase) -> Bool {
                phase.withLock { phase in
                    guard phase == from else { return false }
                    phase = to
                    return true
                }
            }
        }

        init(_ events: sending ServerEvents, lost: @escaping @Sendable () -> Void) {
            let (grants, grant) = AsyncThrowingStream.makeStream(of: GrantedClaimDocument.self)
            let phase = Held()
            self.grants = grants
            self.phase = phase
            reader = Task {
                var problem: (any Error)?
                do {
                    for try await event in events where event.name == "granted" {
                        guard let document = WireCoding.decode(GrantedClaimDocument.self, from: Array(event.data.utf8))
                        else { continue }
                        _ = phase.change(.waiting, to: .held)
                        grant.yield(document)
                    }
                } catch {
                    problem = error
                }
                grant.finish(throwing: problem)
                if phase.change(.held, to: .lost) { lost() }
                return problem == nil
            }
        }

        func granted() async throws -> GrantedClaimDocument? {
            var iterator = grants.makeAsyncIterator()
            return try await iterator.next()
        }

        /// False when it had ended already.
        func giveBack() -> Bool { phase.change(.held, to: .givenBack) }

        /// False when the reply broke off: nobody knows since when the claim was no more.
        func end() async -> Bool { await reader.value }
        func cancel() { reader.cancel() }
    }
}
