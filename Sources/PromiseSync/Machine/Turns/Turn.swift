import Logging
import PromiseCore
import PromiseIndex
import PromiseProvider

/// One decision: it reads the memory, reads and changes the index in one transaction, and collects
/// what is to be done when that is committed. Nothing else changes before.
struct Turn: ~Copyable {
    let facts: Facts
    let memory: Memory
    let world: World
    let now: Moment
    var notices = Notices()
    private var actions: [Action] = []
    private var freshCount = 0
    private var listingCount = 0

    init(_ facts: Facts, _ memory: Memory, _ world: World, at now: Moment) {
        self.facts = facts
        self.memory = memory
        self.world = world
        self.now = now
    }

    mutating func act(_ action: Action) { actions.append(action) }
    mutating func remember(_ change: @escaping (inout Memory) -> Void) {
        actions.append(.remember(change))
    }

    mutating func log(_ level: Logger.Level, _ message: Logger.Message, reason: String? = nil) {
        actions.append(.log(level, message, reason: reason))
    }

    /// Programs are shown what became of the tree before whoever waits for it is answered.
    consuming func allActions() -> [Action] {
        let remembered = actions.filter { if case .remember = $0 { true } else { false } }
        let others = actions.filter { if case .remember = $0 { false } else { true } }
        return remembered + (notices.isEmpty ? [] : [.show(notices)]) + others
    }

    // MARK: What many decisions remember

    /// Something may have changed in a folder. Events come in bursts. Nobody waits for a look at leisure.
    mutating func listAgain(
        _ folder: ItemIdentifier, after delay: Duration = .milliseconds(50), isUsed: Bool = false,
        isLeisurely: Bool = false
    ) {
        let due = now.uptime + delay
        remember { $0.listings.add(folder, at: due, isUsed: isUsed, isLeisurely: isLeisurely) }
    }

    /// The item is asked for before anything is believed of it.
    mutating func ask(for identifier: ItemIdentifier) {
        remember { $0.questions.missing.insert(identifier) }
    }

    /// As `ask`, but not again and again, where there is no answer.
    mutating func askNow(for identifier: ItemIdentifier) {
        let now = now.uptime
        let pause = Duration.seconds(1)
        if let asked = memory.questions.placesAsked[identifier], now - asked < pause { return }
        remember { memory in
            memory.questions.placesAsked.forget(before: now - pause)
            memory.questions.placesAsked[identifier] = now
            memory.questions.missing.insert(identifier)
        }
    }

    /// The provider differs from what was agreed on.
    mutating func noteDivergence() { remember { $0.hasDivergences = true } }

    /// The provider has a folder that was made here.
    mutating func noteMade(_ folder: ItemIdentifier) {
        let now = now.uptime
        remember { $0.listings.made.made(folder, at: now) }
    }

    mutating func lookForPinned() { remember { $0.fetches.lookForPinned() } }

    /// Draws the consequence of an error for the connection as a whole.
    mutating func judge(_ problem: ProviderError) { Connecting.judge(problem, &self) }

    /// Never given before in this process.
    mutating func takeFreshNumber() -> Int {
        freshCount += 1
        let count = memory.freshCount + freshCount
        remember { $0.freshCount = count }
        return count
    }

    mutating func takeListingNumber() -> Int {
        listingCount += 1
        let count = memory.listings.count + listingCount
        remember { $0.listings.count = count }
        return count
    }

    /// Never given before: the clock's nanoseconds, and a count for those within one.
    mutating func freshIdentifier(_ identifier: ItemIdentifier) -> ItemIdentifier {
        let count = takeFreshNumber()
        // A number is the other item's.
        let base = identifier.isNumber ? "/" : identifier.rawValue
        return ItemIdentifier("\(base)#\(now.time.rawValue)-\(count)")
    }
}
