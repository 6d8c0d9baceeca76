import PromiseCore

/// What of the provider is being looked at, or will be within seconds: whoever wants to know that
/// everything is known here waits until that is nothing. Counts; a failure that does not come again
/// says by them what it waited for.
package struct Looks: Hashable, Sendable {
    /// A large folder that was just listed is listed again later than this, and nobody waits for it.
    private static let soon = Duration.seconds(10)

    /// Folders that are being listed.
    var listed = 0
    /// A folder is to be listed soon.
    var isDue = false
    /// Folders to be listed when what they are in has been moved.
    var inMotion = 0
    /// Items to be asked for, those that are being asked for, and those that are said to be gone.
    var missing = 0
    var asked = 0
    var gone = 0
    /// Questions for what is new.
    var news = 0

    init() {}

    /// At an uptime.
    init(_ memory: Memory, at now: Duration) {
        // Nobody waits for a look into what was made here.
        let made = memory.listings.made.listing
        listed = memory.listings.running.values.count { $0.identifier != made }
        var queue = memory.listings.due
        isDue = queue.nextAwaited().map { $0 - now < Looks.soon } ?? false
        inMotion = memory.listings.inMotion.count
        missing = memory.questions.missing.count
        asked = memory.questions.asked.count
        gone = memory.questions.gone.count
        news = memory.feed.newsAskedCount
    }

    var isOver: Bool { self == Looks() }
}
