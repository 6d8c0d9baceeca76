import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSystem
import Synchronization

// A file that is larger than there is room for can be read through all the same: what lies behind its
// reader goes, and comes again when somebody wants it. Only of content that the provider has, and that
// nobody wants whole.

extension Hydrator {
    /// `body` says of a file of a size, of which so many bytes are here, how much of it may be here at
    /// once; nil: all of it.
    package func onRoom(_ body: @escaping @Sendable (_ size: UInt64, _ present: UInt64) -> UInt64?) {
        roomAsked.withLock { $0 = RoomQuestion(body: body) }
    }

    var streaming: Streaming { Streaming(hydrator: self) }
}

struct Streaming: Sendable {
    let hydrator: Hydrator
    /// How often a fetch may find no room at all while others that hold some are on their way.
    private static let starvationMax = 100
    private static let starvationPause = Duration.milliseconds(50)

    /// There is no room for all of it, and nobody wants that.
    func isNeeded(for job: HydrationJob) -> Bool {
        let (present, size) = job.progress
        guard size > hydrator.sizes.smallFileMax, job.mayStream else { return false }
        return hydrator.roomAsked.withLock { $0 }?.body(size, present) != nil
    }

    /// To be called now and then while a large file comes. Does not wait for the disk.
    func keepWithinRoom(_ job: HydrationJob) {
        let (present, size) = job.progress
        guard size > hydrator.sizes.smallFileMax, job.mayStream else { return }
        guard let room = hydrator.roomAsked.withLock({ $0 })?.body(size, present) else { return }
        job.stream(within: room)
        guard present > room / 4 * 3, job.beginTrimming() else { return }
        Task(executorPreference: hydrator.executor) {
            _ = self.drop(present - room / 2, of: job)
            job.endTrimming()
        }
    }

    /// The disk is full, and nothing else can go. False: the fetch is to fail. True: it has ended, and
    /// others go on for whoever waits.
    func goesOn(without range: ByteRange, of job: HydrationJob) async -> Bool {
        guard job.mayStream, job.progress.size > hydrator.sizes.smallFileMax else { return false }
        job.stream(within: max(job.progress.present, hydrator.sizes.smallFileMax))
        let isFreed = drop(2 * range.count, of: job)
        guard isFreed || job.starves(besides: range, countMax: Streaming.starvationMax) else { return false }
        job.fetchEnded(range, isWell: false)
        if !isFreed { await hydrator.pause(Streaming.starvationPause) }
        hydrator.goOn(job)
        return true
    }

    /// Gives back what is here of a file, but for what somebody is reading. True when something went.
    private func drop(_ byteCount: UInt64, of job: HydrationJob) -> Bool {
        // Asked first, so that an edit is never taken from what the index is told.
        guard (try? mayForget(job)) == true, let file = try? hydrator.fileToFill(of: job),
            let ranges = job.beginDropping(byteCount)
        else { return false }
        let isForgotten = (try? forget(job)) ?? false
        // The index says already that nothing is here, so a hole that cannot be punched does no harm.
        if isForgotten {
            for range in ranges { _ = try? punchHole(file.number, range, label: "content.stream.drop") }
        }
        job.endDropping(ranges, areGone: isForgotten)
        if isForgotten { hydrator.store(job) }
        return isForgotten
    }

    private func mayForget(_ job: HydrationJob) throws(Failure) -> Bool {
        try hydrator.index.read { transaction throws(Failure) in
            guard let node = try transaction.node(job.node) else { return false }
            return try mayForget(job, node, transaction)
        }
    }

    /// No more of it was edited here than the provider has, and it is not wanted for good.
    private func mayForget(
        _ job: HydrationJob, _ node: Node, _ transaction: borrowing Transaction
    ) throws(Failure) -> Bool {
        guard hydrator.mayStore(job, for: node), !node.isOpenForWriting, node.pin != .pinned,
            let identifier = try transaction.entries(of: job.node).first?.identifier
        else { return false }
        return try transaction.synced(identifier)?.edits == node.edits
    }

    /// Tells the index that no more is here than the job says; false where that may be an edit, or is
    /// wanted for good.
    private func forget(_ job: HydrationJob) throws(Failure) -> Bool {
        var wasDurable = false
        let isDone: Bool = try hydrator.index.writeFreeing { transaction throws(Failure) in
            guard var node = try transaction.node(job.node), try mayForget(job, node, transaction),
                let ranges = job.rangesToStore(isDurable: false, isOurs: false)
            else { return false }
            guard node.content == .partial else { return true }
            wasDurable = node.durability.hasBase
            try transaction.setRanges(of: job.node, to: ranges)
            node.durability = .unknown
            try transaction.update(node)
            return true
        }
        if isDone, wasDurable { try hydrator.index.synchronize() }
        return isDone
    }
}
