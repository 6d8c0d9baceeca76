package import PromiseCore
package import PromiseIndex
package import PromiseProvider
import PromiseSystem
import Synchronization

// What other threads ask of the engine, and what they may know of it.

extension SyncEngine {
    // MARK: Listing

    /// Makes a folder's children known; replies when the index has them. Called from any thread.
    package func list(_ folder: NodeID, reply: @escaping HydrationReply) {
        list(folder, isWhole: true, reply)
    }

    /// Makes more of a folder's children known; replies when the index has some that it had not, or
    /// all. Called from any thread.
    package func listMore(of folder: NodeID, reply: @escaping HydrationReply) {
        list(folder, isWhole: false, reply)
    }

    private func list(_ folder: NodeID, isWhole: Bool, _ reply: @escaping HydrationReply) {
        if let failure = connectionFailure {
            reply(.failure(failure))
            return
        }
        let waiter = wait(reply)
        mailbox.post(.listingWanted(folder, isWhole: isWhole, waiter))
    }

    /// A program begins to read a folder; called from any thread, each time.
    package func folderIsRead(_ folder: NodeID) {
        guard walkMark.load(ordering: .relaxed) == folder.rawValue else { return }
        mailbox.post(.folderRead(folder))
    }

    /// Looks at one item again, e.g. because a fetch found another version.
    package func lookAgain(at node: NodeID) { mailbox.post(.itemDoubted(node)) }

    /// A folder that was made here is one that was removed here before and that the provider still
    /// has. From any thread.
    package func noteAdopted(_ folder: ItemIdentifier) { mailbox.post(.folderAdopted(folder)) }

    /// Somebody wants to know whether the provider is there. When nothing was heard of it for seconds
    /// it is asked: whoever wants to know a few seconds later is told. From any thread.
    package func noteStatusAsked() {
        if answers.isToBeAsked() { mailbox.post(.silenceNoticed) }
    }

    // MARK: Fetching

    /// Content of these files comes here, in their order, a few at a time. From any thread.
    package func fetchInBackground(_ nodes: [NodeID]) { mailbox.post(.fetchesWanted(nodes)) }

    /// Files may have been pinned that are not here. From any thread.
    package func fetchPinned() { mailbox.post(.pinnedWanted) }

    /// The file is pinned no longer: a fetch for its pin alone ends soon. From any thread.
    package func unpinned(_ node: NodeID) { unpinned(node, dropsContent: false) }

    /// Nothing of the file is to be here any more: a fetch for its pin alone ends soon, what is here
    /// goes at once. From any thread but those serving the mount.
    package func keepOnline(_ node: NodeID) throws(Failure) {
        unpinned(node, dropsContent: true)
        _ = try evict(node, evenUsed: true)
    }

    private func unpinned(_ node: NodeID, dropsContent: Bool) {
        // Of a million files few are on their way.
        guard hydrator.isBusy(node) else { return }
        mailbox.post(.unpinned(node, dropsContent: dropsContent))
    }

    /// What is to be fetched in the background and has not begun, or only just: at most so many.
    /// From any thread.
    package func queuedFetches(limit: Int) throws(Failure) -> [NodeID] {
        let asked = published.withLock { $0.askedFetches }
        let pinned: [NodeID] = try index.read { transaction throws(Failure) in
            try transaction.pinnedPlaceholders(after: NodeID(rawValue: 0), limit: limit)
        }
        return Array((asked + pinned).prefix(limit))
    }

    /// Uses are kept in memory until they matter, are many, or the daemon ends: an open costs no
    /// write. From any thread.
    package func store(uses: [NodeID: Timestamp]) { mailbox.post(.used(uses)) }

    // MARK: Looking now, and waiting until the provider has everything

    package struct Remainder: Sendable, Equatable {
        package var pending: Int
        package var failing: Int
        package var looks: Looks
        /// Looks that the engine has not begun.
        package var looksWanted: Int

        package var isLooking: Bool { looksWanted > 0 || !looks.isOver }
        package var isDone: Bool { pending == 0 && !isLooking }
    }

    /// Lists again the known folders that may have changed and makes pending work due; all known
    /// folders if
    /// `everything`. Called from any thread.
    package func lookNow(everything: Bool = false) {
        published.withLock { published in
            // Until the engine has published what comes of it.
            published.looks.isDue = true
            published.looksWanted += 1
        }
        mailbox.post(.lookWanted(everything: everything))
    }

    /// While draining, files that are open for writing are sent as they are and quiet times are cut
    /// short. It ends when all who began it have ended it.
    package func setDraining(_ isDraining: Bool) { mailbox.post(.draining(isDraining)) }

    /// Sends these before their time, and the content of `nodes` although they are open; `nodes` are
    /// all that somebody waits for. From any thread.
    package func hurry(_ subjects: [Pending.Subject], _ nodes: Set<NodeID>) {
        mailbox.post(.hurried(subjects, nodes))
    }

    /// Makes pending work due now, including what open files hold.
    package func makeEverythingDueNow() { mailbox.post(.everythingDue) }

    /// Who was in the way of a change has let go. From any thread.
    package func followAgain() { mailbox.post(.claimsReleased) }

    /// While paused the provider is told nothing and nothing is fetched by itself, also by the next
    /// engine; uploads of much that are under way end. Replies when the index has it. From any
    /// thread.
    package func setPaused(_ isPaused: Bool, reply: @escaping HydrationReply) {
        mailbox.post(.pauseWanted(isPaused, wait(reply)))
    }

    /// What it may use, also by the next engine. Replies when the index has it. From any thread.
    package func setLimits(_ change: LimitsChange, reply: @escaping HydrationReply) {
        mailbox.post(.limitsWanted(change, wait(reply)))
    }

    /// What the provider has not been told yet.
    package func remainder() throws(Failure) -> Remainder {
        let (looks, wanted) = published.withLock { ($0.looks, $0.looksWanted) }
        return try index.read { transaction throws(Failure) in
            let counts = try transaction.counts()
            return Remainder(
                pending: counts.pending, failing: counts.failing, looks: looks, looksWanted: wanted)
        }
    }

    /// What stands in the way, of the oldest pending work that has a message.
    package func obstacle() throws(Failure) -> Failure? {
        try index.read { transaction throws(Failure) in
            try transaction.allPending(limit: 100).lazy.compactMap { row in
                row.message.map { Failure(row.error ?? .inputOutput, $0) }
            }.first
        }
    }

    // MARK: What is known of the engine

    package var uploadDelay: Duration { configuration.uploadDelay }
    package var connection: Connection { published.withLock { $0.connection } }
    /// Since when the provider has been away, and when it is tried again.
    package var connectionTimes: (since: Timestamp?, nextTry: Timestamp?) {
        published.withLock { ($0.connectionSince, $0.nextTry) }
    }
    /// Since when it is paused; nil: it is not.
    package var pausedSince: Timestamp? { published.withLock { $0.pausedSince } }
    /// Nil: the provider has no line that could be slowed down.
    package var lineLimit: LineLimit? { provider.lineLimit }
    package var limits: Limits { published.withLock { $0.limits } }
    /// Bytes of content that are kept at most; nil: what there is room for.
    package var cacheLimit: UInt64? { limits.cacheLimit(configuration.cacheLimit) }
    package var trouble: Failure? { published.withLock { $0.trouble } }
    /// Folders that could not be listed.
    package var folderTroubles: FolderTroubles { published.withLock { $0.folderTroubles } }
    package var bytesUploaded: UInt64 { published.withLock { $0.bytesUploaded } }
    package var uploadingCount: Int { published.withLock { $0.runningSubjects.count } }
    package func isUploading(_ node: NodeID) -> Bool {
        published.withLock { $0.uploading.contains(node) }
    }
    package func isRunning(_ subject: Pending.Subject) -> Bool {
        published.withLock { $0.runningSubjects.contains(subject) }
    }

    /// The failure a program gets at once while the provider cannot be reached; nil while it can.
    package var connectionFailure: Failure? {
        switch connection {
        case .online, .connecting: nil
        case .offline(let message): Failure(.offline, message)
        case .failing(let message): Failure(.refused, message)
        }
    }

    /// Somebody who waits has the provider tried, and it has not answered yet.
    package var isProbing: Bool { published.withLock { $0.probeCount > 0 || $0.looksWanted > 0 } }

    // MARK: Questions within a transaction

    /// The provider's name of a folder or of a node's first name; nil while the provider has none.
    package func identifier(
        of node: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemIdentifier? {
        if node == .root { return rootIdentifier }
        return try transaction.entries(of: node).first?.identifier
    }

    package func reference(
        to identifier: ItemIdentifier, _ transaction: borrowing Transaction
    ) throws(Failure) -> ItemReference? {
        guard let path = try transaction.remotePath(of: identifier) else { return nil }
        return ItemReference(identifier: identifier, path: path)
    }

    /// In a folder here: the first name of a conflict version that nothing has.
    package func freeConflictName(
        for name: FileName, in parent: NodeID, _ transaction: borrowing Transaction
    ) throws(Failure) -> FileName {
        try Tree.freeConflictName(
            for: name, in: parent, configuration.hostName, clock.now(), transaction)
    }
}
