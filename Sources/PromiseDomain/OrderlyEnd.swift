import PromiseContent
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseSystem

/// What is noted of a daemon that ends in order: that the next one need not look for what a crash or a power cut has left.
struct OrderlyEnd {
    /// On a disk that takes longer it is not noted: contents are not trusted then when the machine was started anew.
    private static let patience = Duration.seconds(10)

    let index: Index
    let content: ContentStore
    let clock: any TimeSource

    /// After the last change.
    func note() async throws(Failure) {
        let contents = ContentAtEnd(index: index, content: content, clock: clock)
        let attempt = Attempt { () -> Result<Void, Failure> in
            let pool = BlockingPool(name: "ending", threads: 1)
            defer { pool.stop() }
            return await pool.run { Result { () throws(Failure) in try contents.bringToDisk() } }
        }
        guard let outcome = await attempt.outcome(within: OrderlyEnd.patience) else {
            throw Failure(.timedOut, "the disk takes too long")
        }
        try outcome.get()
        try index.write { transaction throws(Failure) in try transaction.setSetting("closed", "yes") }
    }
}
