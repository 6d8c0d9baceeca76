import PromiseCore
package import PromiseProvider
import PromiseSystem
import Synchronization

// What others changed. Servers have no feed, so what is known is looked at again: the whole bucket where that takes fewer
// requests than its folders one by one, which are listed then where they hold something else.

extension S3Provider {
    /// A look at the whole bucket is not begun for fewer folders.
    private static let foldersMin = 16
    /// A page of the bucket takes a server as long as the listings of so many small folders, of which several run at once.
    private static let foldersPerPage = 4
    /// After a look that turned out to be too long: there is more in the bucket than is known here.
    private static let pause = Duration.seconds(600)

    package func currentAnchor() async throws(ProviderError) -> Anchor { Anchor(rawValue: "look") }

    package func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        await tryAgain()
        let (folders, nextLook) = shared.withLock { ($0.folders, $0.nextBucketLook) }
        guard folders.count >= Self.foldersMin, clock.uptime() >= nextLook,
            let look = try await lookAtBucket(pagesMax: folders.count / Self.foldersPerPage)
        else { return ChangePage(foldersToList: Set(folders.keys), isGuess: true, anchor: anchor) }
        let changed = shared.withLock { shared in folders.filter { shared.digests.isChanged($0.value, in: look) } }
        return ChangePage(foldersToList: Set(changed.keys), anchor: anchor)
    }

    /// Nil when there is too much in it.
    private func lookAtBucket(pagesMax: Int) async throws(ProviderError) -> BucketLook? {
        var look = BucketLook()
        var next: S3Listing.Next?
        for _ in 0..<pagesMax {
            let page = try await list(location.prefix, delimiter: false, from: next, "the bucket cannot be listed")
            look.add(page.objects)
            next = page.next
            if next == nil { return look }
        }
        shared.withLock { $0.nextBucketLook = clock.uptime() + Self.pause }
        return nil
    }

    package func waitForChanges(since anchor: Anchor) async throws(ProviderError) {
        throw ProviderError(.permanent, "an S3 server does not push changes")
    }
}
