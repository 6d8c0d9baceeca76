/// One item of a request for several that could not be done.
public struct ItemFailureDocument: Codable, Sendable, Equatable {
    public var path: String
    public var pathBytes: String
    /// As in a problem document, like the next two.
    public var code: String
    public var detail: String
    public var exitStatus: Int32

    public init(path: String, pathBytes: String, code: String, detail: String, exitStatus: Int32) {
        self.path = path
        self.pathBytes = pathBytes
        self.code = code
        self.detail = detail
        self.exitStatus = exitStatus
    }
}

/// The data of `progress` and `done` events of a fetch.
public struct ProgressDocument: Codable, Sendable, Equatable {
    public var filesDone: Int
    /// Grows while folders are listed, as `bytesTotal`.
    public var filesTotal: Int
    public var bytesDone: UInt64
    public var bytesTotal: UInt64
    public var failures: [ItemFailureDocument]

    public init(filesDone: Int, filesTotal: Int, bytesDone: UInt64, bytesTotal: UInt64, failures: [ItemFailureDocument]) {
        self.filesDone = filesDone
        self.filesTotal = filesTotal
        self.bytesDone = bytesDone
        self.bytesTotal = bytesTotal
        self.failures = failures
    }
}

/// An item that stayed local, and why.
public struct KeptItemDocument: Codable, Sendable, Equatable {
    public var path: String
    public var pathBytes: String
    /// A clause for people.
    public var reason: String
    /// `open`, `pinned`, `unsent`, `excluded`, `claimed` or `nameless`.
    public var code: String?
    /// How a command that was to evict this very item ends; nil for what is below the folder that was named.
    public var exitStatus: Int32?

    public init(path: String, pathBytes: String, reason: String) {
        self.path = path
        self.pathBytes = pathBytes
        self.reason = reason
    }
}

/// The answer to an eviction.
public struct EvictionDocument: Codable, Sendable, Equatable {
    public var evicted: Int
    public var bytesFreed: UInt64
    /// Modified, pinned or open items.
    public var kept: [KeptItemDocument]
    public var failures: [ItemFailureDocument]

    public init(evicted: Int, bytesFreed: UInt64, kept: [KeptItemDocument], failures: [ItemFailureDocument]) {
        self.evicted = evicted
        self.bytesFreed = bytesFreed
        self.kept = kept
        self.failures = failures
    }
}

/// The answer to setting a pin.
public struct PinDocument: Codable, Sendable, Equatable {
    public var pin: String
    /// How many items have it now.
    public var items: Int
    public var failures: [ItemFailureDocument]

    public init(pin: String, items: Int, failures: [ItemFailureDocument]) {
        self.pin = pin
        self.items = items
        self.failures = failures
    }
}

/// A piece of work that is queued or running.
public struct PendingItemDocument: Codable, Sendable, Equatable {
    /// `upload`, `create`, `move`, `metadata`, `delete`, `download` or `local`; `excluded` is never sent.
    public var kind: String
    public var node: UInt64?
    public var path: String
    public var pathBytes: String
    public var isRunning: Bool
    /// Bytes.
    public var size: UInt64
    public var progress: Double?
    public var since: String
    public var attempts: Int
    /// Of the last attempt.
    public var error: String?
    /// Since when the provider has neither taken bytes nor answered; missing: it was heard a moment ago.
    public var silentSince: String?

    public init(
        kind: String, node: UInt64? = nil, path: String, pathBytes: String, isRunning: Bool, size: UInt64,
        progress: Double? = nil, since: String, attempts: Int, error: String? = nil
    ) {
        self.kind = kind
        self.node = node
        self.path = path
        self.pathBytes = pathBytes
        self.isRunning = isRunning
        self.size = size
        self.progress = progress
        self.since = since
        self.attempts = attempts
        self.error = error
    }
}

/// `GET /v1/pending`.
public struct PendingDocument: Codable, Sendable, Equatable {
    /// The oldest 10,000.
    public var items: [PendingItemDocument]
    /// How many more there are, where there are, and how large the files that they are about.
    public var moreCount: Int?
    public var moreByteCount: UInt64?

    public init(items: [PendingItemDocument]) {
        self.items = items
    }
}

/// The answer to `POST /v1/sync`.
public struct SyncDocument: Codable, Sendable, Equatable {
    /// Items whose changes the provider has not seen.
    public var pending: Int

    public init(pending: Int) {
        self.pending = pending
    }
}

/// The answer to `POST /v1/verify`.
public struct VerifyDocument: Codable, Sendable, Equatable {
    /// How many were looked at.
    public var nodes: Int
    /// A sentence for each violation that is left.
    public var problems: [String]
    /// A sentence for each one that was mended.
    public var repaired: [String]

    public init(nodes: Int, problems: [String], repaired: [String]) {
        self.nodes = nodes
        self.problems = problems
        self.repaired = repaired
    }
}

/// The answer to `POST /v1/unmount`.
public struct UnmountDocument: Codable, Sendable, Equatable {
    /// Items whose changes the provider has not seen; they are kept for the next mount.
    public var pending: Int

    public init(pending: Int) {
        self.pending = pending
    }
}

/// The data of an event of `GET /v1/trace`: a request of the kernel that was answered.
public struct TraceDocument: Codable, Sendable, Equatable {
    /// `lookup`, `open`, `read`, …
    public var operation: String
    public var node: UInt64
    /// Where the node is now; missing when it has gone.
    public var path: String?
    public var pathBytes: String?
    /// Who asked; 0 when the kernel itself did.
    public var process: Int32
    /// Its name; missing when it has ended.
    public var program: String?
    /// Until the answer, waiting included.
    public var microseconds: Int64
    /// errno as the caller got it; 0 for success.
    public var errorNumber: Int32
    /// So many requests before this one were not told, as they were not read in time.
    public var lost: Int?

    public init(
        operation: String, node: UInt64, path: String?, pathBytes: String?, process: Int32, program: String?, microseconds: Int64,
        errorNumber: Int32
    ) {
        self.operation = operation
        self.node = node
        self.path = path
        self.pathBytes = pathBytes
        self.process = process
        self.program = program
        self.microseconds = microseconds
        self.errorNumber = errorNumber
    }
}
