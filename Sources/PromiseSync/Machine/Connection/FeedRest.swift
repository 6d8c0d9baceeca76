/// How long a provider that tells by itself is left alone: one that answers at once, and says nothing,
/// would be asked as fast as it answers. Pure.
struct FeedRest {
    /// Changes of our own come as such pages, and so do those that a feed leaves out.
    private static let freeCount = 4
    private static let first = Duration.milliseconds(50)
    /// What others change is to be seen within two seconds.
    private static let longest = Duration.seconds(1)

    /// Uptime of the last question.
    private(set) var asked = Duration.zero
    /// Answers in a row that came before they were waited for, and brought nothing.
    private(set) var vainCount = 0

    mutating func asks(at now: Duration) { asked = now }

    /// `isVain`: nothing is in the answer, or the next question would be the same one.
    mutating func answered(isVain: Bool, at now: Duration) {
        vainCount = isVain && now - asked < FeedRest.longest ? vainCount + 1 : 0
    }

    /// Until the next question, from now on; nil: none is needed.
    func pause(at now: Duration) -> Duration? {
        guard vainCount > FeedRest.freeCount else { return nil }
        let doublings = min(vainCount - FeedRest.freeCount - 1, 5)
        let pause = min(FeedRest.first * (1 << doublings), FeedRest.longest) - (now - asked)
        return pause > .zero ? pause : nil
    }
}
