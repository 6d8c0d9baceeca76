import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

/// What others changed. Servers have no feed, so what is known is looked at again: the whole bucket
/// where that takes fewer requests than its folders one by one, which are listed then where they
/// hold something else.
final class BucketChanges: Sendable {
    /// A look at the whole bucket is not begun for fewer folders.
    private static let foldersMin = 16
    /// A page of the bucket takes a server as long as the listings of so many small folders, of
    /// which several run at once.
    private static let foldersPerPage = 4
    /// After a look that turned out to be too long: there is more in the bucket than is known here.
    private static let pause = Duration.seconds(600)

    private let bucket: S3Bucket
    private let listed: ListedFolders
    /// Uptime when a look at the whole bucket may be worth it again.
    private let nextLook = Mutex(Duration.zero)

    init(bucket: S3Bucket, listed: ListedFolders) {
        self.bucket = bucket
        self.listed = listed
    }

    func page(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        let folders = listed.keys
        let nextLook = nextLook.withLock { $0 }
        guard folders.count >= BucketChanges.foldersMin, bucket.clock.uptime() >= nextLook,
            let look = try await look(pagesMax: folders.count / BucketChanges.foldersPerPage)
        else { return ChangePage(foldersToList: Set(folders.keys), isGuess: true, anchor: anchor) }
        return ChangePage(foldersToList: listed.changed(in: look), anchor: anchor)
    }

    /// Nil when there is too much in it.
    private func look(pagesMax: Int) async throws(ProviderError) -> BucketLook? {
        var look = BucketLook()
        var next: S3Listing.Next?
        for _ in 0..<pagesMax {
            let prefix = bucket.location.prefix
            let page = try await bucket.list(
                prefix, delimiter: false, from: next, "the bucket cannot be listed")
            look.add(page.objects)
            next = page.next
            if next == nil { return look }
        }
        nextLook.withLock { $0 = bucket.clock.uptime() + BucketChanges.pause }
        return nil
    }
}
