import Synchronization

/// Where lists come from, and who carries out what is decided.
public protocol PickerData: Sendable {
    func places() async -> [PickerPlace]
    func list(_ listing: PickerListing, offset: Int, limit: Int) async throws -> PickerPage
    func makeFolder(_ folder: PickerFolder, name: [UInt8]) async throws -> PickerFolder
    func rename(_ item: PickerItem, to name: [UInt8]) async throws
}

public struct PickerPage: Sendable, Equatable {
    public var total: Int
    public var items: [PickerItem]
    public var reason: String?

    public init(total: Int, items: [PickerItem], reason: String? = nil) {
        self.total = total
        self.items = items
        self.reason = reason
    }
}

/// What becomes of what was picked: all of it, or nothing.
public protocol PickerConsequences: Sendable {
    func perform(_ consequences: [PickerConsequence]) async throws -> [PickedDocument]
}

/// Runs a machine: one task takes the events, one after the other, and the rest is done beside it.
public final class PickerSession: Sendable {
    /// A front end's look at the machine.
    public typealias Show = @Sendable (PickerMachine) -> Void

    private let data: any PickerData
    private let consequences: any PickerConsequences
    private let hasLists: Bool
    private struct Message: Sendable {
        var event: PickerEvent
        var handled: Show?
    }

    /// Lists that are being asked for, all of one generation.
    private struct Asked: Sendable {
        static let countMax = 64
        var generation = 0
        var tasks: [Task<Void, Never>] = []
    }

    private let asked = Mutex(Asked())
    private let choices = Mutex<[Int]>([])
    private let messages: AsyncStream<Message>
    private let send: AsyncStream<Message>.Continuation

    /// `hasLists` false: the front end asks for lists by itself.
    public init(
        _ data: any PickerData, _ consequences: any PickerConsequences, hasLists: Bool = true
    ) {
        self.hasLists = hasLists
        self.data = data
        self.consequences = consequences
        (messages, send) = AsyncStream.makeStream(of: Message.self)
    }

    /// From any thread. `handled` is called when the machine has taken the event, unless the picker
    /// ends.
    public func post(_ event: PickerEvent, handled: Show? = nil) {
        send.yield(Message(event: event, handled: handled))
    }

    /// What the person has chosen besides, once the picker has ended: an index of each choice's names.
    public var chosen: [Int] { choices.withLock { $0 } }

    /// Once for each session; cancelling the task cancels the picker.
    public func run(_ request: PickerRequest, show: @escaping Show) async -> PickerOutcome {
        var machine = PickerMachine(request, hasLists: hasLists)
        show(machine)
        let start = Task { [self] in post(.places(await data.places())) }
        defer { start.cancel() }
        for await message in messages {
            for action in machine.handle(message.event) {
                if case .finish(let outcome) = action {
                    choices.withLock { [chosen = machine.chosen] in $0 = chosen }
                    show(machine)
                    return outcome
                }
                begin(action)
            }
            show(machine)
            message.handled?(machine)
        }
        // The task was cancelled: front ends see the end.
        _ = machine.finish(.cancelled)
        show(machine)
        return .cancelled
    }

    private func begin(_ action: PickerAction) {
        let task = task(for: action)
        guard case .list(_, let generation, _, _) = action else { return }
        // Nobody waits any more for a list that another one has taken the place of.
        let overtaken = asked.withLock { asked -> [Task<Void, Never>] in
            let isOther = asked.generation != generation
            let overtaken = isOther ? asked.tasks : []
            if isOther { asked = Asked(generation: generation) }
            // The first ones have been answered, or will be all the same.
            asked.tasks = asked.tasks.suffix(Asked.countMax - 1) + [task]
            return overtaken
        }
        for task in overtaken { task.cancel() }
    }

    private func task(for action: PickerAction) -> Task<Void, Never> {
        Task { [self] in
            switch action {
            case .list(let listing, let generation, let offset, let limit):
                guard hasLists else { return }
                do {
                    let page = try await data.list(listing, offset: offset, limit: limit)
                    post(
                        .window(
                            generation: generation, offset: offset, total: page.total,
                            items: page.items,
                            reason: page.reason))
                } catch {
                    post(.failed(generation: generation, message: "\(error)"))
                }
            case .makeFolder(let folder, let name):
                do {
                    post(.made(try await data.makeFolder(folder, name: name)))
                } catch {
                    post(.refused("\(error)"))
                }
            case .rename(let item, let name):
                do {
                    try await data.rename(item, to: name)
                    post(.changed)
                } catch {
                    post(.refused("\(error)"))
                }
            case .perform(let wanted):
                do {
                    post(.performed(try await consequences.perform(wanted)))
                } catch {
                    post(.refused("\(error)"))
                }
            case .finish: break
            }
        }
    }
}
