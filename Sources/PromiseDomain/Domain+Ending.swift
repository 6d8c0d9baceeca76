import Glibc
import Logging
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseMount
import PromiseProvider
import PromiseSync
import PromiseSystem

/// How a domain ends: for good, or for a successor on the same mount.
extension Domain {
    /// Waits until the mount has ended (by request, by umount(8), or because the kernel gave up), then closes everything.
    package func waitUntilUnmounted() async {
        await session.waitUntilEnded()
        itemServices.thumbnails.end()
        filesystem.coordinator.end()
        hub.stop()
        trace.end()
        await services.tellMoves()
        keyValues.stop()
        services.stop()
        itemServices.stop()
        engine.stop()
        if engine.connectionFailure == nil { await provider.letGo() }
        var pending = 0
        do throws(Failure) {
            pending = try engine.remainder().pending
            try await OrderlyEnd(index: index, content: content, clock: clock).note()
        } catch {
            logger.error("the index could not be closed in order", metadata: ["reason": "\(error.message)"])
        }
        index.close()
        life.update { [pending] in $0.remaining = pending }
        holder?.tellEnded()
    }

    /// Ends this process, as a crash would but in one piece, for the holder to start the executable anew: programs on the
    /// mount wait a moment. Returns only with a failure: `.notSupported` where the mount would end with the process; `.busy`
    /// where it is made anew, and files are open that their programs would lose.
    package func restart() -> Failure {
        guard let holder, holder.isAlive else {
            return Failure(.notSupported, "this mount would end with its daemon: unmount it and mount it again")
        }
        let openCount = session.outlivesDaemon ? 0 : filesystem.openCount
        guard openCount == 0 else {
            let files = openCount == 1 ? "a file is open, which its program" : "\(openCount) files are open, which programs"
            return Failure(.busy, "by io_uring the mount is made anew, and \(files) would lose: close them first")
        }
        logger.notice("ending for a successor")
        holder.tellRestart()
        // No cleaning up: what has returned is kept (see SEMANTICS), and the mount is to stay.
        _exit(0)
    }

    /// Unmounts. With `wait`, first until nothing is pending or the timeout passes. Returns how many items are left pending;
    /// they are kept for the next mount. Throws `.busy` when files are open (not with `lazy`).
    package func unmount(wait: Bool, timeout: Duration?, lazy: Bool) async throws(Failure) -> Int {
        if wait {
            do throws(Failure) {
                try await itemServices.work.synchronize(below: nil, wait: true, timeout: timeout)
            } catch  where error.code != .interrupted {
                // What is left is kept and said by the number returned.
            }
            // What items have besides is told when the provider has them.
            let limit = min(timeout ?? Domain.recordPatience, Domain.recordPatience)
            await services.attributes.send(within: limit, looksAnyway: true)
        }
        let closing = ClosingWait(mountPoint: session.mountPoint, clock: clock)
        try await unmountWhenIdle(lazy: lazy)
        if lazy { return try engine.remainder().pending }
        // The last closes are still being served; only then it is known what is left.
        return try await closing.wait { [life] in life.withLock { $0.remaining } }
    }

    private static let recordPatience = Duration.seconds(10)

    /// Programs that have just ended may still hold files in the kernel for a moment.
    private func unmountWhenIdle(lazy: Bool) async throws(Failure) {
        for attempt in 0... {
            do throws(Failure) {
                try services.views.letGo(lazy: lazy)
                return try session.unmount(lazy: lazy)
            } catch {
                guard error.code == .busy, attempt < 20 else { throw error }
                filesystem.parking.abandonOrphans()
                try? await Task.sleep(for: .milliseconds(50))
            }
        }
    }
}
