import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Synchronization

/// Finds what listings do not tell, by a look at each object (HeadObject): of a few at once, of
/// many in the background, and the next listing tells it then.
final class DetailsFinder: Sendable {
    private struct State {
        var keys: [[UInt8]] = []
        var waiting: Set<[UInt8]> = []
        var isRunning = false
        /// Uptime of the last listing.
        var lastCall = Duration.zero
    }

    /// Who lists folder after folder is hardly held up by looks at what is in them.
    private static let pause = Duration.milliseconds(250)

    /// Between two looks somebody else's requests have a chance.
    private static let batch = 64
    /// What is beyond is asked for again by the next listing. No more than `KnownDetails` keeps
    /// until then.
    private static let keysMax = 40_000

    private let bucket: S3Bucket
    private let folders: BucketFolders
    private let hollows: HollowObjects
    private let state = Mutex(State())

    init(bucket: S3Bucket, folders: BucketFolders, hollows: HollowObjects) {
        self.bucket = bucket
        self.folders = folders
        self.hollows = hollows
    }

    /// Asks for what listings do not tell, of several objects at the same time. What is gone
    /// meanwhile is left out, and what stands for nothing.
    func look(_ keys: [[UInt8]]) async throws(ProviderError) -> [[UInt8]: ObjectDetails] {
        let found = try await concurrently(keys) {
            [self] (key) async throws(ProviderError) -> ([UInt8], ObjectDetails)? in
            try await look(key).map { (key, $0) }
        }
        return found.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }

    private func look(_ key: [UInt8]) async throws(ProviderError) -> ObjectDetails? {
        if key.last == KeyNames.slash { return try await folders.details(key) }
        guard let found = try await bucket.anyStatus(ofKey: key, "an object cannot be looked at")
        else { return nil }
        if HollowObject.isOne(found) {
            if bucket.isAcquainted, hollows.isForsaken(found) {
                // Who may only look looks all the same.
                _ = try? await hollows.remove(key, "an object cannot be removed")
            }
            return nil
        }
        bucket.details.note(key, bucket.stamp(found), found.details, size: found.size)
        return found.details
    }

    // MARK: In the background

    func find(_ keys: [[UInt8]]) {
        let now = bucket.clock.uptime()
        let starts = state.withLock { state in
            state.lastCall = now
            for key in keys
            where state.waiting.count < DetailsFinder.keysMax && state.waiting.insert(key).inserted
            {
                state.keys.append(key)
            }
            defer { state.isRunning = true }
            return !state.isRunning
        }
        guard starts else { return }
        Task { [weak self] in
            while let self {
                await self.rest()
                guard let batch = self.next() else { return }
                do throws(ProviderError) {
                    _ = try await self.look(batch)
                } catch {
                    // The server has trouble; the next listing asks again.
                    self.stop()
                    return
                }
            }
        }
    }

    /// A pause, when somebody listed something a moment ago.
    private func rest() async {
        guard state.withLock({ $0.lastCall }) + DetailsFinder.pause > bucket.clock.uptime() else {
            return
        }
        try? await Task.sleep(for: DetailsFinder.pause)
    }

    private func next() -> [[UInt8]]? {
        state.withLock { state in
            var batch: [[UInt8]] = []
            while batch.count < DetailsFinder.batch, let key = state.keys.popLast() {
                if state.waiting.remove(key) != nil { batch.append(key) }
            }
            if batch.isEmpty { state.isRunning = false }
            return batch.isEmpty ? nil : batch
        }
    }

    /// It was told by something else, e.g. when the object was fetched.
    func isFound(_ key: [UInt8]) { state.withLock { _ = $0.waiting.remove(key) } }

    private func stop() { state.withLock { $0 = State() } }
}
