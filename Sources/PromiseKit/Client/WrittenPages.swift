import CAttributes
import Foundation
import Glibc
import PromiseWire

/// What programs have written through mappings is in the kernel's pages for half a minute, where no
/// daemon sees it.
enum WrittenPages {
    /// Of a daemon that does not answer, which the next request says.
    private static let patience = Duration.seconds(10)

    /// The kernel gives a domain's daemon what it has (syncfs(2)). Done by who asks, as a daemon
    /// that waited for itself would wait for ever. Nothing happens where the mount cannot be seen.
    static func flush(to client: PromiseClient) async {
        guard let status = try? await client.status(),
            let mountPoint = PercentCoding.decode(status.mountPointBytes),
            !mountPoint.contains(0)
        else { return }
        let (stream, end) = AsyncStream<Void>.makeStream()
        // Of its own, as such a daemon holds it.
        Thread.detachNewThread {
            flush(mountPoint)
            end.finish()
        }
        let deadline = Task {
            // It ends when it is cancelled.
            try? await Task.sleep(for: patience)
            end.finish()
        }
        for await _ in stream {}
        deadline.cancel()
    }

    private static func flush(_ mountPoint: [UInt8]) {
        let folder = mountPoint.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard folder >= 0 else { return }
        _ = attributes_flush(folder)
        close(folder)
    }
}
