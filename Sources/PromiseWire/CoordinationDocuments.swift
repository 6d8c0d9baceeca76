/// `POST /v1/claims`: items that are to be read or written without being disturbed. The claim lives as long as the reply's
/// stream of events, or until `DELETE /v1/claims/ID`.
public struct ClaimDocument: Codable, Sendable, Equatable {
    public struct Item: Codable, Sendable, Equatable {
        /// Percent-encoded bytes from the root of the mount. To be written, it may be what is not there yet, in a folder that is.
        public var path: String
        /// `read` or `write`.
        public var access: String
        /// For reading `withoutChanges`, `resolvesSymbolicLink`, `immediatelyAvailableMetadataOnly`, `forUploading`; for writing
        /// `forDeleting`, `forMoving`, `forMerging`, `forReplacing`, `contentIndependentMetadataOnly`.
        public var options: [String]?

        public init(path: String, access: String, options: [String]? = nil) {
            self.path = path
            self.access = access
            self.options = options
        }
    }

    public var items: [Item]
    /// Claims and presenters of one purpose do not wait for each other.
    public var purpose: String?
    /// Missing: for ever.
    public var timeoutSeconds: Double?
    /// The claims of this domain that end only after this one: it is refused when it would wait for one of them. Missing: all
    /// of its purpose.
    public var within: [UInt64]?
    /// Nobody is kept out: the presenters of all items are asked at once, and not again by claims that are within this one.
    public var isPreparation: Bool?

    public init(items: [Item], purpose: String? = nil, timeoutSeconds: Double? = nil) {
        self.items = items
        self.purpose = purpose
        self.timeoutSeconds = timeoutSeconds
    }
}

/// The event `granted`.
public struct GrantedClaimDocument: Codable, Sendable, Equatable {
    public struct Item: Codable, Sendable, Equatable {
        /// Missing: nothing is there yet, and the claim is about the place.
        public var node: UInt64?
        /// Stays with the item, also when it is renamed, moved, or saved as a new file; missing where nothing is yet.
        public var id: Int64?
        /// Where the item is now, whatever moved while the claim waited.
        public var path: String
        public var pathBytes: String
        /// Of an item to be read `forUploading`: percent-encoded bytes of the absolute path of a copy that nobody writes, of a
        /// folder as one ZIP archive. It goes when the claim ends.
        public var snapshotBytes: String?

        public init(node: UInt64?, path: String, pathBytes: String, snapshotBytes: String? = nil) {
            self.node = node
            self.path = path
            self.pathBytes = pathBytes
            self.snapshotBytes = snapshotBytes
        }

        /// The bytes of `snapshotBytes`.
        public var snapshot: [UInt8]? { snapshotBytes.flatMap { PercentCoding.decode($0) } }
    }

    public var claim: UInt64
    /// In the order of the request.
    public var items: [Item]

    public init(claim: UInt64, items: [Item]) {
        self.claim = claim
        self.items = items
    }
}

/// `POST /v1/presenters`: a process that shows an item. It is one as long as the reply's stream of events.
public struct PresenterDocument: Codable, Sendable, Equatable {
    /// Percent-encoded bytes from the root of the mount.
    public var path: String
    /// Claims of the same purpose do not ask it.
    public var purpose: String?
    /// Of an item that was presented before: it is presented wherever it is now, and nothing else that has its path. The
    /// problem `gone` says that it is no more.
    public var id: Int64?

    public init(path: String, purpose: String? = nil, id: Int64? = nil) {
        self.path = path
        self.purpose = purpose
        self.id = id
    }
}

/// The events `presenting`, `ask` and `tell`.
public struct PresenterEventDocument: Codable, Sendable, Equatable {
    public var presenter: UInt64
    /// Of `ask`: `relinquishToReader`, `relinquishToWriter`, `saveChanges`, `accommodateDeletion`,
    /// `accommodateSubitemDeletion`, `accommodateEviction`; of `tell`: `reacquire`, `didChange`, `didMove`, `didDelete`,
    /// `subitemDidAppear`, `subitemDidChange`, `subitemDidMove`, `subitemDidDelete`; `didGainVersion`, `didLoseVersion`,
    /// `didResolveVersion` and the same of what is in a folder, `subitemDidGainVersion`, ….
    public var what: String?
    /// Of `ask`: to be given with the answer, `POST /v1/presenters/ID/answers`.
    public var question: UInt64?
    /// What it is about, and where that is now; missing when it has gone.
    public var node: UInt64?
    public var path: String?
    public var pathBytes: String?
    /// Of `subitemDidMove` and `subitemDidDelete`: where it was, as the folders are named now.
    public var oldPath: String?
    public var oldPathBytes: String?
    /// Of an unresolved version that came, went or was dealt with: its name, beside the document. Percent-encoded bytes.
    public var version: String?
    /// Of `presenting`: stays with the item, also when it is renamed, moved, or saved as a new file; missing for the root.
    public var id: Int64?

    public init(
        presenter: UInt64, what: String? = nil, question: UInt64? = nil, node: UInt64? = nil, path: String? = nil,
        pathBytes: String? = nil
    ) {
        self.presenter = presenter
        self.what = what
        self.question = question
        self.node = node
        self.path = path
        self.pathBytes = pathBytes
    }
}

/// `POST /v1/presenters/ID/answers`: a presenter has done what it was asked.
public struct AnswerDocument: Codable, Sendable, Equatable {
    public var question: UInt64
    /// It could not do it: whoever asked does not get at the item.
    public var failed: Bool?

    public init(question: UInt64, failed: Bool? = nil) {
        self.question = question
        self.failed = failed
    }
}

/// What there is to say when there is nothing to say.
public struct DoneDocument: Codable, Sendable, Equatable {
    public var done: Bool

    public init(done: Bool) { self.done = done }
}
