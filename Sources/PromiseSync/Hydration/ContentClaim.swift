package import PromiseCore
package import PromiseIndex

/// What a call on the mount is about to change of content that is on its way: some bytes, or the
/// size.
///
/// Until it is confirmed or withdrawn, which whoever has it does exactly once, nothing that is
/// fetched lands there, nobody else claims it, and the job does not end: it is held over one write
/// of the disk and one of the index, and no longer. What is claimed does not count as here. First
/// the content file is changed, then the index, and then `confirm` says so; who fails before that
/// withdraws, and everything is as it was.
package struct ContentClaim: Sendable {
    package enum Change: Sendable, Hashable {
        case written(ByteRange)
        case resized(to: UInt64)
    }

    let job: HydrationJob
    let number: UInt64

    /// Of the content file that it is about.
    package var generation: Generation { job.generation }
    /// Of the content, before the change.
    package var size: UInt64 { job.progress.size }

    /// All of it is here.
    package func isHere(_ range: ByteRange) -> Bool { job.ranges.contains(range) }

    /// Some of it is here: perhaps an edit that nobody else has.
    package func isPartlyHere(_ range: ByteRange) -> Bool {
        !range.isEmpty && job.ranges.missing(in: range) != [range]
    }

    /// What is here after the change, of the version that is fetched for certain, to be stored in the
    /// transaction that calls this. From here on nobody else stores what is here, as that would leave
    /// the change out before it is confirmed, or keep it after it is withdrawn. `node`: as the
    /// transaction finds it.
    package func ranges(after change: Change, of node: Node) -> ByteRangeSet {
        job.ranges(after: change, under: number, isDurable: node.durability.hasBase)
    }

    /// The content file and the index have the change.
    package func confirm(_ change: Change) { job.release(number, with: change) }

    /// What is here is what was here before.
    package func withdraw() { job.release(number, with: nil) }
}
