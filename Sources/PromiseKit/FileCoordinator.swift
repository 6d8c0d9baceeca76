import NIOCore
public import PromiseWire

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
/// A claim ends with the closure, and in any case with this process.
public struct FileCoordinator: Sendable {
    public let client: PromiseClient
    /// Claims and presenters of one purpose never wait for each other.
    public let purpose: String?

    public init(_ client: PromiseClient, purpose: String? = nil) {
        self.client = client
        self.purpose = purpose
    }

    /// Runs `body` with all of the items at once. Throws what `body` throws, or `PromiseError`: of status 4 when the items were
    /// not free within `timeout` (nil: for ever), of 1 when waiting would never end. Cancelling the task gives the claim up.
    ///
    /// What `body` is given says where the items are when it begins, whatever was moved meanwhile.
    public func coordinate<Value>(
        _ intents: [FileAccessIntent], timeout: Duration? = nil, _ body: (GrantedClaimDocument) async throws -> Value
    ) async throws -> Value {
        let seconds = timeout.map { Double($0.components.seconds) + Double($0.components.attoseconds) / 1e18 }
        let request = ClaimDocument(items: intents.map(\.document), purpose: purpose, timeoutSeconds: seconds)
        // The end of the request's body is the end of the access.
        let (content, ending) = AsyncStream.makeStream(of: ByteBuffer.self)
        defer { ending.finish() }
        ending.yield(ByteBuffer(bytes: WireCoding.bytes(request) + [0x0A]))
        var events = try await client.stream("POST", "accesses", content).makeAsyncIterator()
        var granted: GrantedClaimDocument?
        while granted == nil, let event = try await events.next() {
            if event.name == "granted" { granted = WireCoding.decode(GrantedClaimDocument.self, from: Array(event.data.utf8)) }
        }
        guard let granted else {
            throw PromiseError(.brokenReply, "the daemon of '\(client.domain)' ended before the claim was granted", exitStatus: 4)
        }
        let value: Value
        do {
            value = try await body(granted)
        } catch {
            ending.finish()
            while (try? await events.next()) != nil {}
            throw error
        }
        // Read to its end: then the claim is no more, and the connection can be used again.
        ending.finish()
        while try await events.next() != nil {}
        return value
    }
}
