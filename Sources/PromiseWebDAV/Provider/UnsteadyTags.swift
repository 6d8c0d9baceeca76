import AsyncHTTPClient
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import Synchronization

/// Replies to GET of servers that give a file another tag at each request, whatever it holds. What such a server
/// has just said in a listing is never what it says next, so a content would be fetched without end.
///
/// A reply is then taken for the version that it was asked for: each is one content of the file. Nothing is
/// overwritten by that, as no later tag is the one that a change names as its base.
final class UnsteadyTags: Sendable {
    struct Reply {
        var path: [FileName]
        var version: ContentVersion
        var size: UInt64?
        var lastModified: String?
        /// The server's clock, when it answered.
        var date: String?
        /// All of the content comes in it, and it is as long as was expected.
        var isWhole: Bool

        init(_ response: HTTPClientResponse, _ described: ResourceStatus, of path: [FileName], expecting size: UInt64?) {
            self.path = path
            version = described.version
            (self.size, lastModified) = (described.contentLength, described.lastModified)
            date = response.headers.first(name: "Date")
            isWhole = response.status.code == 200 && size != nil && described.contentLength == size
        }

        /// What was changed so long before is not changed once more within the same tick of the clock.
        private static let tick = Duration.seconds(2)

        /// The file has the size and time that another reply told, which are older than any tick.
        func tellsNoChange(since other: Seen) -> Bool {
            guard size != nil, size == other.size, let lastModified, lastModified == other.lastModified,
                let time = HTTPDate.timestamp(lastModified), let now = date.flatMap({ HTTPDate.timestamp($0) })
            else { return false }
            return time.advanced(by: Reply.tick) <= now
        }
    }

    /// What the replies of a moment ago said, none of which was what it was asked for.
    struct Seen {
        var versions: [ContentVersion]
        var size: UInt64?
        var lastModified: String?
        /// Uptime, of the last one.
        var time: Duration
    }

    private static let lifetime = Duration.seconds(60)
    private static let pathsMax = 1_024
    private static let versionsMax = 8

    private let state = Mutex<[[FileName]: Seen]>([:])

    /// Whether what a reply sends is to be taken for `version`. `isRight`: it says so.
    func takes(_ reply: Reply, as version: ContentVersion, isRight: Bool, at time: Duration) -> Bool {
        state.withLock { state in
            if isRight {
                state[reply.path] = nil
                return true
            }
            let seen = state[reply.path].flatMap { time - $0.time < UnsteadyTags.lifetime ? $0 : nil }
            // One that comes back is that of a content, of which a server may have two for a while.
            let others = (seen?.versions ?? []).filter { $0 != version && $0 != reply.version }
            let isUnsteady = !others.isEmpty && others.count == seen?.versions.count
            if state.count >= UnsteadyTags.pathsMax { state = [:] }
            state[reply.path] = Seen(
                versions: (isUnsteady ? others.suffix(UnsteadyTags.versionsMax - 1) : []) + [reply.version],
                size: reply.size, lastModified: reply.lastModified, time: time)
            guard isUnsteady, let seen else { return false }
            return reply.tellsNoChange(since: seen) || reply.isWhole && others.count >= 2
        }
    }
}

extension ResourceStatus {
    /// What a reply to GET says of the file that it sends, or of which it sends a part.
    init(_ response: HTTPClientResponse) {
        self.init()
        entityTag = response.headers.first(name: "ETag")
        lastModified = response.headers.first(name: "Last-Modified")
        contentLength = ReplyContent.wholeSize(response)
    }
}
