import Logging
package import PromiseContent
package import PromiseCore
package import PromiseIndex
package import PromiseProvider
import PromiseSystem
import Synchronization

/// The machine without provider, threads and clock, as a text: what happens, and below it what is to
/// be done. For tests only.
package final class MachineTranscript {
    private let scribe = Scribe()
    private let index: Index
    private var runner: MachineRunner

    private final class Span: Sendable {
        let time = Mutex<Duration?>(nil)
    }

    private let heardNothing = Span()
    private let goodAnswer = Span()
    /// Uptime of the last answer that was of use; nil: each moment there is one.
    package var lastGood: Duration? {
        get { goodAnswer.time.withLock { $0 } }
        set { goodAnswer.time.withLock { $0 = newValue } }
    }
    private let changed = Span()
    /// Uptime of the last change that programs made here; nil: long ago.
    package var lastChange: Duration? {
        get { changed.time.withLock { $0 } }
        set { changed.time.withLock { $0 = newValue } }
    }
    /// For how long those who wait for the provider have heard nothing.
    package var silence: Duration? {
        get { heardNothing.time.withLock { $0 } }
        set { heardNothing.time.withLock { $0 = newValue } }
    }

    package var now: Timestamp { scribe.moment.time }
    /// When the provider is said to be tried again.
    package var nextTry: Timestamp? { runner.machine.memory.connection.nextTry }

    /// How many folders are remembered in which something of ours was looked for.
    package var lookCount: Int { runner.machine.memory.questions.looks.count }

    /// Of how much it is remembered that our own operations changed it.
    package var touchedCount: Int { runner.machine.memory.operations.touchedCount }

    package init(
        index: Index, content: ContentStore, root: ItemIdentifier, capabilities: Capabilities,
        configuration: SyncEngine.Configuration, observer: any LocalTreeObserver
    ) {
        self.index = index
        let facts = Facts(
            configuration: configuration, rootIdentifier: root, providerName: "store:",
            capabilities: capabilities)
        let world = World(
            observer: observer, content: content, fetchProblem: { _ in nil },
            lastChange: { [changed] in changed.time.withLock { $0 } ?? .zero - .seconds(3_600) },
            silence: { [heardNothing] in heardNothing.time.withLock { $0 } },
            lastGood: { [goodAnswer] in goodAnswer.time.withLock { $0 } ?? .seconds(1_000_000_000) })
        runner = MachineRunner(
            Machine(facts, world), index: index, performer: scribe,
            now: { [scribe] in scribe.moment })
    }

    /// Since the last time.
    package func take() -> String {
        defer { scribe.lines = [] }
        return scribe.lines.joined(separator: "\n")
    }

    package func happen(_ what: String, _ event: Event) {
        scribe.lines.append("> \(what)")
        runner.run(event)
        _ = runner.look()
    }

    /// The wall clock is set.
    package func setClock(back span: Duration) {
        scribe.lines.append("> the clock is set back")
        scribe.setBack(span)
    }

    /// With all that is due meanwhile.
    package func pass(_ time: Duration) {
        scribe.lines.append("> \(time.components.seconds) s later")
        let end = scribe.moment.uptime + time
        while let next = runner.look(), scribe.moment.uptime + next <= end {
            scribe.pass(max(next, .milliseconds(1)))
        }
        if end > scribe.moment.uptime { scribe.pass(end - scribe.moment.uptime) }
        _ = runner.look()
    }

    /// What the provider says to the first call that begins like this and waits for an answer.
    package enum Answer {
        case item(Item)
        case items([Item], isLast: Bool)
        case done
        case anchor(String)
        case changes(ChangePage)
        case failure(ProviderError)
    }

    /// False when there is no such call.
    @discardableResult
    package func answer(_ call: String, _ what: String, _ answer: Answer) -> Bool {
        guard let place = scribe.calls.firstIndex(where: { $0.text.hasPrefix(call) }),
            let event = MachineTranscript.event(scribe.calls[place].call, answer)
        else { return false }
        if case .items(_, isLast: false) = answer {} else { scribe.calls.remove(at: place) }
        happen("\(call): \(what)", event)
        return true
    }

    private static func event(_ call: Call, _ answer: Answer) -> Event? {
        switch (call, answer) {
        case (.list(let number, _, _), .items(let items, let isLast)):
            .listed(ListedPart(number: number, items: items, isPageEnd: true, isLast: isLast))
        case (.list(let number, _, _), .failure(let problem)):
            .listingFailed(number: number, problem)
        case (.find(let item, _, let count), .item(let found)):
            .found(item, .success(FoundItem(item: found)), operationCount: count)
        case (.find(let item, _, let count), .failure(let problem)):
            .found(item, .failure(problem), operationCount: count)
        case (.tell(let operation), .item(let item)): .told(operation, .success(.item(item)))
        case (.tell(let operation), .done): .told(operation, .success(.deleted))
        case (.tell(let operation), .failure(let problem)): .told(operation, .failure(problem))
        case (.root(let number), .item(let item)): .rootAnswered(number: number, .success(item))
        case (.root(let number), .failure(let problem)):
            .rootAnswered(number: number, .failure(problem))
        case (.currentAnchor(let feed), .anchor(let anchor)):
            .anchorKnown(feed: feed, Anchor(rawValue: anchor))
        case (.changes(let feed, _, _), .changes(let page)): .changesKnown(feed: feed, page)
        case (.currentAnchor(let feed), .failure(let problem)),
            (.changes(let feed, _, _), .failure(let problem)):
            .feedFailed(feed: feed, problem)
        case (.news, .changes(let page)): .newsKnown(page)
        default: nil
        }
    }
}

/// Writes down what is to be done, and does nothing.
private final class Scribe: ActionPerformer {
    var lines: [String] = []
    /// Those that wait for an answer.
    var calls: [(text: String, call: Call)] = []
    private(set) var moment = Moment(
        time: Timestamp(seconds: 1_000_000, nanoseconds: 0), uptime: .zero)
    let isShortOfRoom = false

    func setBack(_ span: Duration) { moment.time = moment.time.advanced(by: .zero - span) }

    func pass(_ time: Duration) {
        moment = Moment(time: moment.time.advanced(by: time), uptime: moment.uptime + time)
    }

    func perform(_ action: Action) {
        switch action {
        case .call(let call):
            calls.append((call.text, call))
            lines.append(call.text)
        case .cancelListing(let number): lines.append("no longer list, \(number)")
        case .cancelTelling: lines.append("no longer tell")
        case .cancelFeed(let feed): lines.append("no longer ask for changes, feed \(feed)")
        case .cancelRoot: lines.append("no longer ask for the root")
        case .show(let notices): show(notices)
        case .reply(let waiter, .success): lines.append("reply to \(waiter.number): it is there")
        case .reply(let waiter, .failure(let failure)):
            lines.append("reply to \(waiter.number): \(failure.message)")
        case .stepped(let waiter, let operation):
            lines.append("reply to \(waiter.number): step \(operation?.kind.rawValue ?? "none")")
        case .failFetches(let failure): lines.append("end all fetches: \(failure.message)")
        case .fetch(let node): lines.append("fetch \(node)")
        case .endFetch(let node): lines.append("no longer fetch \(node)")
        case .releaseFetch(let node): lines.append("give up fetching \(node)")
        case .evict(let node): lines.append("evict \(node)")
        case .makeRoom: lines.append("make room")
        case .storeUses(let uses): lines.append("note uses of \(uses.count)")
        case .noteOpenWrites: lines.append("note open writes")
        case .takeUsed: lines.append("see what is used")
        case .takeFreshlyUsed: lines.append("see what is used again")
        case .paused(let since): lines.append(since == nil ? "go on" : "pause")
        case .limited(let limits): lines.append("keep within \(limits)")
        case .log(let level, let message, let reason):
            if level >= .notice {
                lines.append("say: \(message)" + (reason.map { " (\($0))" } ?? ""))
            }
        case .uploaded, .remember, .go, .wait: break
        }
    }

    private func show(_ notices: Notices) {
        for (_, name) in notices.entries { lines.append("show the name \(name)") }
        for (node, content) in notices.nodes {
            lines.append("show \(content ? "the content" : "what is known") of \(node)")
        }
        for node in notices.hydrate { lines.append("fetch \(node), to send it") }
    }
}

extension Call {
    fileprivate var text: String {
        switch self {
        case .list(let number, let folder, let isFirst):
            "list \(folder.text)\(isFirst ? "" : " again"), \(number)"
        case .find(let item, let places, _):
            "find \(item.rawValue) at "
                + places.map(\.reference.text).joined(separator: ", then at ")
        case .lookInto(let folder, _): "look into \(folder.text)"
        case .survey(let survey, _):
            "look for a folder at " + survey.places.map(\.text).joined(separator: " and ")
        case .tell(let operation): operation.work.text
        case .root: "ask for the root"
        case .currentAnchor(let feed): "ask for the anchor, feed \(feed)"
        case .changes(let feed, let anchor, let isWaiting):
            "\(isWaiting ? "wait" : "ask") for changes since \(anchor.rawValue), feed \(feed)"
        case .news(let anchor): "ask for news since \(anchor.rawValue)"
        }
    }
}

extension Operation.Work {
    fileprivate var text: String {
        switch self {
        case .create(let item, let folder, _): "create \(item.name) in \(folder.text)"
        case .modify(let item, let changes, let source, let base):
            "modify \(item.text) of version \(base.rawValue)" + (source == nil ? "" : ", content")
                + (changes.place.map { ", move to \($0.parent.text) as \($0.name)" } ?? "")
        case .delete(let item, _): "delete \(item.text)"
        case .compare(let comparison): "compare \(comparison.reference.text)"
        }
    }
}

extension ItemReference {
    fileprivate var text: String { "/" + path.map { "\($0)" }.joined(separator: "/") }
}
