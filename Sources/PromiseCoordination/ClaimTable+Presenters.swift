package import PromiseCore

// Presenters: who is asked before somebody else gets at an item, and told afterwards.

extension ClaimTable {
    /// A question, and the item that it is about.
    struct Step: Hashable, Sendable {
        var question: Question
        var node: NodeID
    }

    struct Asking: Sendable {
        var presenter: PresenterID
        var steps: [Step]
        /// How many folders are above what it shows.
        var depth: Int
    }

    struct OpenQuestion: Sendable {
        var claim: ClaimID
        var presenter: PresenterID
        /// To be asked after this one has been answered.
        var rest: [Step]
        var deadline: Duration
    }

    /// From here on the presenter is asked and told. `chains`: the folders above each name of the item.
    package mutating func addPresenter(
        of node: NodeID, named name: EntryID? = nil, chains: [[NodeID]], purpose: Purpose? = nil
    ) -> PresenterID {
        let id = PresenterID(rawValue: takeNumber())
        enter(id, Presenter(node: node, chains: chains, purpose: purpose, name: name))
        return id
    }

    package mutating func addPresenter(
        of node: NodeID, named name: EntryID? = nil, in folders: [NodeID], purpose: Purpose? = nil
    ) -> PresenterID {
        addPresenter(of: node, named: name, chains: [folders], purpose: purpose)
    }

    /// What it has not answered counts as answered.
    package mutating func removePresenter(_ id: PresenterID, now: Duration = .zero) {
        guard let presenter = presenters.removeValue(forKey: id) else { return }
        leave(id, presenter)
        for number in questions.filter({ $0.value.presenter == id }).keys.sorted() { finish(number, now: now) }
    }

    private mutating func enter(_ id: PresenterID, _ presenter: Presenter) {
        places[presenter.node, default: Place()].presenters.append(id)
        for folder in presenter.folders { places[folder, default: Place()].presentersBelow.append(id) }
        presenters[id] = presenter
    }

    private mutating func leave(_ id: PresenterID, _ presenter: Presenter) {
        change(presenter.node) { $0.presenters.removeAll { $0 == id } }
        for folder in presenter.folders { change(folder) { $0.presentersBelow.removeAll { $0 == id } } }
    }

    mutating func movePresenters(_ name: MovedName, _ place: Place) {
        for id in Set(place.presenters + place.presentersBelow).sorted() { change(id) { $0.follow(name) } }
    }

    /// Who shows an item is asked for those who are to change it by any of its names, as these are now.
    package mutating func named(_ node: NodeID, _ chains: [[NodeID]]) {
        for id in places[node]?.presenters ?? [] { change(id) { $0.chains = chains } }
    }

    private mutating func change(_ id: PresenterID, _ body: (inout Presenter) -> Void) {
        guard var presenter = presenters[id] else { return }
        leave(id, presenter)
        body(&presenter)
        enter(id, presenter)
    }

    /// Who shows another name of the file goes on showing what that one is.
    mutating func replacePresenters(_ replaced: [ReplacedNode]) {
        var followed: [(id: PresenterID, by: ReplacedNode)] = []
        for (id, presenter) in presenters where !presenter.isOver {
            guard let by = replaced.first(where: { $0.old == presenter.node && $0.isOf(presenter.name) }) else { continue }
            followed.append((id, by))
        }
        for (id, by) in followed.sorted(by: { $0.id < $1.id }) {
            change(id) { presenter in
                presenter.node = by.new
                presenter.chains = by.newFolders.map { [$0] } ?? by.chains(of: presenter.chains)
            }
        }
        for (id, by) in followed.sorted(by: { $0.id < $1.id }) {
            if isTold(id, writers: writers(at: [by.new])) {
                if by.newFolders != nil { actions.append(.tell(id, .didMove)) }
                actions.append(.tell(id, .didChange))
            }
        }
    }

    /// Whether somebody shows this very item.
    package func isPresented(_ node: NodeID) -> Bool { places[node]?.presenters.isEmpty == false }

    package var presentedNodes: Set<NodeID> { Set(presenters.values.filter { !$0.isOver }.map(\.node)) }

    // MARK: - Asking

    /// A claim has nothing in its way: asks presenters, or grants it when there is nobody to ask.
    mutating func prepare(_ id: ClaimID, now: Duration) {
        guard let claim = claims[id] else { return }
        if presenters.isEmpty { return grant(id) }
        var asked = stepsOfAll(claim)
        for other in asked.keys {
            let isSame = claim.purpose != nil && presenters[other]?.purpose == claim.purpose
            if isSame || presenters[other]?.isSilent == true { asked[other] = nil }
            asked[other]?.removeAll { isPrepared(other, for: $0.question, claim) }
        }
        asked = asked.filter { !$0.value.isEmpty }
        if claim.isPreparation { claims[id]?.asked = asked.mapValues { $0.map(\.question) } }
        // What is deepest first: a folder's presenter closes it after those of what is in it.
        let turns = asked.map { Asking(presenter: $0.key, steps: $0.value, depth: depth($0.key)) }
        claims[id]?.toAsk = turns.sorted { ($0.depth, $1.presenter) > ($1.depth, $0.presenter) }
        askNext(id, now: now)
    }

    /// What is to be asked of whom for all items of a claim: one presenter may show what is in several of them.
    private func stepsOfAll(_ claim: Claim) -> [PresenterID: [Step]] {
        var result: [PresenterID: [Step]] = [:]
        for intent in claim.intents {
            let questions = intent.access.questions
            guard !questions.isEmpty else { continue }
            for presenter in places[intent.node].map({ $0.presentersBelow + $0.presenters }) ?? [] {
                let stays = presenters[presenter]?.name.map { intent.stayingNames.contains($0) } ?? false
                for question in questions where !(stays && question == .accommodateDeletion)
                    && result[presenter]?.contains(where: { $0.question == question }) != true {
                    result[presenter, default: []].append(Step(question: question, node: intent.node))
                }
            }
            guard questions.contains(.accommodateDeletion) else { continue }
            for presenter in intent.folders.flatMap({ places[$0]?.presenters ?? [] }) {
                result[presenter, default: []].append(Step(question: .accommodateSubitemDeletion, node: intent.node))
            }
        }
        for (presenter, steps) in result {
            let asked = Set(steps.map(\.question))
            // Who lets a writer have it lets readers have it, and who closes a folder closes what is in it.
            let isCovered: [Question: Question] = [
                .relinquishToReader: .relinquishToWriter, .accommodateSubitemDeletion: .accommodateDeletion,
            ]
            result[presenter] = Question.order.flatMap { question in
                if let more = isCovered[question], asked.contains(more) { return [Step]() }
                return steps.filter { $0.question == question }
            }
        }
        return result
    }

    /// Asks those whose turn it is, who are all as deep; the next ones when they have answered. Then the claim is granted.
    mutating func askNext(_ id: ClaimID, now: Duration) {
        guard let waiting = claims[id]?.toAsk else { return }
        var turn: [Asking] = []
        var rest = waiting[...]
        while let next = rest.first, turn.isEmpty || next.depth == turn[0].depth {
            rest.removeFirst()
            // It may have gone, or have let a question of another one pass, meanwhile.
            if let presenter = presenters[next.presenter], !presenter.isSilent, !presenter.isOver { turn.append(next) }
        }
        claims[id]?.toAsk = Array(rest)
        if turn.isEmpty { return grant(id) }
        claims[id]?.phase = .preparing(turn.count)
        for next in turn { ask(next.presenter, next.steps, of: id, now: now) }
    }

    /// Whether a preparation that the claim is nested in has asked for it.
    private func isPrepared(_ presenter: PresenterID, for question: Question, _ claim: Claim) -> Bool {
        preparations.contains { id in
            guard let other = claims[id], isGranted(id), let asked = other.asked[presenter], claim.isWithin(id, other)
            else { return false }
            return asked.contains(question) || question == .relinquishToReader && asked.contains(.relinquishToWriter)
        }
    }

    private func depth(_ presenter: PresenterID) -> Int { presenters[presenter]?.folders.count ?? 0 }

    private mutating func ask(
        _ presenter: PresenterID, _ steps: [Step], of claim: ClaimID, now: Duration
    ) {
        let number = takeNumber()
        let (question, node) = (steps[0].question, steps[0].node)
        let isRelinquishing = question == .relinquishToReader || question == .relinquishToWriter
        questions[number] = OpenQuestion(
            claim: claim, presenter: presenter, rest: Array(steps.dropFirst()), deadline: now + answerLimit)
        // Whenever it does that, it has to hear when it is over.
        if isRelinquishing {
            claims[claim]?.relinquished.append(presenter)
            presenters[presenter]?.relinquishments += 1
        }
        actions.append(.ask(presenter, question, number: number, node: node))
        if let purpose = presenters[presenter]?.purpose { letIn(purpose, before: claim, now: now) }
    }

    /// A claim that has asked the presenter to give something up has ended; it is told when that was the last one.
    mutating func reacquire(_ presenter: PresenterID) {
        guard let count = presenters[presenter]?.relinquishments else { return }
        presenters[presenter]?.relinquishments = count - 1
        if count == 1 { actions.append(.tell(presenter, .reacquire)) }
    }

    /// A presenter has done what it was asked; an answer that comes too late does no harm.
    package mutating func answered(_ number: UInt64, now: Duration = .zero) {
        guard let question = questions[number] else { return }
        if question.rest.isEmpty { return finish(number, now: now) }
        questions[number] = nil
        ask(question.presenter, question.rest, of: question.claim, now: now)
    }

    /// A presenter could not do what it was asked: whoever waits for that does not get at the item.
    package mutating func failed(_ number: UInt64, now: Duration = .zero) {
        guard let claim = questions[number]?.claim else { return }
        actions.append(.refused(claim, .notPrepared))
        release(claim, now: now)
    }

    /// Whose question it is.
    package func claim(asking number: UInt64) -> ClaimID? { questions[number]?.claim }

    /// A presenter has let the time for an answer pass: what it has not answered counts as answered.
    mutating func giveUp(_ id: PresenterID, now: Duration) {
        presenters[id]?.isSilent = true
        for number in questions.filter({ $0.value.presenter == id }).keys.sorted() { finish(number, now: now) }
    }

    /// A presenter has answered anything, however late: it is asked again from now on.
    package mutating func heard(from id: PresenterID) { presenters[id]?.isSilent = false }

    /// Who may answer a question.
    package func presenter(asked number: UInt64) -> PresenterID? { questions[number]?.presenter }

    private mutating func finish(_ number: UInt64, now: Duration) {
        guard let question = questions.removeValue(forKey: number) else { return }
        guard case .preparing(let count)? = claims[question.claim]?.phase else { return }
        claims[question.claim]?.phase = .preparing(count - 1)
        goOn(question.claim, now: now)
    }

    // MARK: - Telling

    /// Something happened to a node, whoever did it: its presenters are told, and those of the folders above. Who has
    /// a claim to write it knows. `folders` are those it is in, or was in when it has gone.
    /// `isItemTold`: its own presenters know already. `place`: of a move, where it was. `actor`: who did it, and knows.
    package mutating func happened(
        _ event: Event, to node: NodeID, in folders: [NodeID], from place: OldPlace? = nil, isItemTold: Bool = false,
        named name: EntryID? = nil, by actor: Purpose? = nil
    ) {
        tell(event, to: node, in: folders, from: place, isForItem: !isItemTold, named: name, by: actor)
    }

    /// The item moved out of these folders: it is told those who show them. Who shows the item hears of its new place.
    package mutating func left(
        _ folders: [NodeID], _ node: NodeID, named name: EntryID? = nil, from place: OldPlace? = nil
    ) {
        tell(.moved, to: node, in: folders, from: place, isForItem: false, named: name)
    }

    /// The names of an item that presenters show.
    package func presentedNames(of node: NodeID) -> Set<EntryID> {
        Set((places[node]?.presenters ?? []).compactMap { presenters[$0]?.name })
    }

    /// Names of an item have gone, others may be there. Who shows one that has gone is told, and has nothing to do with
    /// the item any more; nobody else is concerned.
    package mutating func lostNames(_ names: Set<EntryID>, of node: NodeID) {
        let writing = writers(at: [node])
        for id in places[node]?.presenters ?? [] {
            guard let presenter = presenters[id], let name = presenter.name, names.contains(name) else { continue }
            if isTold(id, writers: writing) { actions.append(.tell(id, .didDelete)) }
            leave(id, presenter)
            presenters[id]?.isOver = true
        }
    }

    /// A name of the item went from these folders: it is told those who show them.
    package mutating func vanished(_ node: NodeID, from place: OldPlace, in folders: [NodeID]) {
        tell(.deleted, to: node, in: folders, from: place, isForItem: false)
    }

    private mutating func tell(
        _ event: Event, to node: NodeID, in folders: [NodeID], from place: OldPlace?, isForItem: Bool,
        named name: EntryID? = nil, by actor: Purpose? = nil
    ) {
        var insiders = writers(at: [node] + folders)
        // Told a while later, when other claims may be there.
        if case .version = event { insiders = [] }
        if let actor { insiders.insert(actor) }
        if isForItem, let notice = event.notice {
            var told = places[node]?.presenters ?? []
            // Of a file with several names the others are where they were.
            if let name { told.removeAll { presenters[$0]?.name.map { $0 != name } ?? false } }
            // What is in a folder moves with it.
            if event == .moved { told += places[node]?.presentersBelow ?? [] }
            for id in told where isTold(id, writers: insiders) { actions.append(.tell(id, notice)) }
        }
        let notice = event.subitemNotice(node, named: name, from: place)
        for folder in folders {
            for id in places[folder]?.presenters ?? [] where isTold(id, writers: insiders) {
                actions.append(.tell(id, notice))
            }
        }
    }

    private func isTold(_ id: PresenterID, writers: Set<Purpose>) -> Bool {
        guard let presenter = presenters[id] else { return false }
        return presenter.purpose.map { !writers.contains($0) } ?? true
    }

    /// Who may have done something there. Whoever reads it, or waits for his claim, has not.
    private func writers(at nodes: [NodeID]) -> Set<Purpose> {
        let covered = Set(nodes)
        let ids = covered.flatMap { places[$0]?.claims ?? [] }.filter(isGranted)
        let writing = ids.compactMap { claims[$0] }.filter { claim in
            claim.intents.contains { $0.access.isWriting && !covered.isDisjoint(with: $0.keys) }
        }
        return Set(writing.compactMap(\.purpose))
    }

    package typealias Event = ItemEvent
}

/// What happens to an item, whoever does it.
package enum ItemEvent: Hashable, Sendable {
    case appeared, changed, moved, deleted
    /// Of a document: an unresolved version of this name.
    case version(VersionChange, FileName)

    var notice: Notice? {
        switch self {
        case .version(let change, let name): .version(change, name)
        case .appeared: nil
        case .changed: .didChange
        case .moved: .didMove
        case .deleted: .didDelete
        }
    }

    func subitemNotice(_ node: NodeID, named name: EntryID?, from place: OldPlace?) -> Notice {
        switch self {
        case .version(let change, let name): .subitemVersion(change, name, node)
        case .appeared: .subitemDidAppear(node, named: name)
        case .changed: .subitemDidChange(node, named: name)
        case .moved: .subitemDidMove(node, named: name, from: place)
        case .deleted: .subitemDidDelete(node, from: place)
        }
    }
}

extension Question {
    /// In which one presenter is asked.
    static let order: [Question] = [
        .relinquishToReader, .relinquishToWriter, .saveChanges, .accommodateDeletion, .accommodateSubitemDeletion,
        .accommodateEviction,
    ]
}

extension Access {
    /// What presenters of the item are asked, one after the other.
    var questions: [Question] {
        if isAboutMetadata { return [] }
        switch self {
        case .read(let options):
            return options.contains(.withoutChanges) ? [.relinquishToReader] : [.relinquishToReader, .saveChanges]
        case .write(let options):
            if options.contains(.forEvicting) { return [.accommodateEviction] }
            var result: [Question] = [.relinquishToWriter]
            if options.contains(.forMerging) { result.append(.saveChanges) }
            if !options.isDisjoint(with: [.forDeleting, .forReplacing]) { result.append(.accommodateDeletion) }
            return result
        }
    }
}
