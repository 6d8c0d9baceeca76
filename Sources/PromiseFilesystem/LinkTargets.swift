package import PromiseAccess
package import PromiseCore
import PromiseIndex
import PromiseSync

package typealias LinkReply = @Sendable (Result<[UInt8], Failure>) -> Void

/// What is asked of a link.
package enum LinkQuestion: Sendable {
    case target
    /// Why it leads nowhere, or that it does not; of a reference alone.
    case state
}

/// Where links lead: an ordinary one to what it says, a reference to where its document is now.
package struct LinkTargets: Sendable {
    let index: Index
    let notifier: (any KernelNotifier)?
    package let memory: ReferenceMemory?
    /// Applications are told nothing of other domains than theirs.
    var isInView = false

    package var inView: LinkTargets {
        var targets = self
        targets.isInView = true
        return targets
    }

    static let stateName = Array("system.promisefs.reference".utf8)

    /// It names the attribute that says a reference's state.
    package static func isState(_ name: [UInt8]) -> Bool { VirtualAttribute(name) == .reference }

    /// Of a node as the mount knows it. Of one that leads into another domain what was known last.
    func target(of node: Node?) throws(Failure) -> [UInt8] {
        guard let node else { throw Failure(.stale, "the link is gone") }
        guard let target = node.target else {
            throw Failure(.invalid, "node \(node.id) is not a symbolic link")
        }
        guard let record = ReferenceRecord(target: target) else { return target }
        // The kernel would go on showing it after the document was moved.
        defer { notifier?.invalidateContent(of: node.id, range: nil) }
        if isElsewhere(record) {
            return record.link(in: try folder(of: node.id), elsewhere(record, node.id))
        }
        // Before the index is asked, which may know of later ones by then.
        let change = index.newestChange
        if let link = memory?.link(of: node.id, saying: target, at: change) { return link }
        let (finding, folder) = try find(record, node.id)
        let link = record.link(in: folder, finding.fate, finding.path)
        // What was not found may be found without a change of the tree.
        if finding.fate == .found { memory?.note(link, of: node.id, saying: target, at: change) }
        return link
    }

    /// Why it leads nowhere, or that it does not; nil of what is no reference.
    func state(of node: Node) throws(Failure) -> String? {
        guard let record = node.target.flatMap({ ReferenceRecord(target: $0) }) else { return nil }
        let fate =
            isElsewhere(record)
            ? elsewhere(record, node.id).fate : try find(record, node.id).finding.fate
        return fate.reason ?? fate.rawValue
    }

    /// As an application is told: a reference tells where its document is, and follows it, so that of one that was not given
    /// nothing is said. `place`: where its view has an item, which may be elsewhere than in the domain; nil: nowhere.
    func target(of node: Node?, in place: (NodeID) throws(Failure) -> [FileName]?) throws(Failure) -> [UInt8] {
        guard let record = node?.target.flatMap({ ReferenceRecord(target: $0) }), let node else {
            return try target(of: node)
        }
        guard !isElsewhere(record), let document = try find(record, node.id).finding.entry?.node,
            let path = try place(document), let own = try place(node.id)
        else { return LinkTargets.notGiven }
        return record.link(in: Array(own.dropLast()), .found, path)
    }

    private static let notGiven = Array(".promisefs/not-given".utf8)

    private func find(
        _ record: ReferenceRecord, _ reference: NodeID
    ) throws(Failure) -> (finding: ItemFinder.Finding, folder: [FileName]) {
        let (finding, folder): (ItemFinder.Finding, [FileName]) = try index.read {
            transaction throws(Failure) in
            let folder = try transaction.path(of: reference)?.dropLast() ?? []
            return (
                try ItemFinder(record.key, reference: reference).find(transaction), Array(folder)
            )
        }
        if let missing = finding.missing { memory?.miss(missing) }
        if finding.fate == .deleted || finding.fate == .replaced { memory?.noteGone() }
        // A full disk keeps nobody from reading the link; the next one who reads it tries again.
        if let entry = finding.entry?.id { try? bind(reference, to: entry) }
        return (finding, folder)
    }

    private func folder(of reference: NodeID) throws(Failure) -> [FileName] {
        try index.read { transaction throws(Failure) in
            Array(try transaction.path(of: reference)?.dropLast() ?? [])
        }
    }

    /// Where others replace a document as a whole, its name here is all that stays.
    package func bind(_ reference: NodeID, to entry: EntryID) throws(Failure) {
        if memory?.isKnown(entry, of: reference) == true { return }
        try keep("\(entry)", of: reference)
        memory?.note(entry, of: reference)
    }

    private func keep(_ text: String, of reference: NodeID) throws(Failure) {
        let name = ItemFinder.setting(of: reference)
        let known = try index.read { transaction throws(Failure) in try transaction.setting(name) }
        guard known != text else { return }
        try index.write { transaction throws(Failure) in try transaction.setSetting(name, text) }
    }

    // MARK: Other domains

    /// Its document is in another domain than the reference.
    package func isElsewhere(_ record: ReferenceRecord) -> Bool {
        record.storage.map { $0.identifier != memory?.storage } ?? false
    }

    /// As it was known last: asks nobody.
    package func elsewhere(_ record: ReferenceRecord, _ reference: NodeID) -> ElsewhereFinding {
        let known = isInView ? nil : memory?.finding(of: reference)
        return known ?? ElsewhereFinding(.notMounted, path: record.key.path)
    }

    /// Asks the other domain; `done` is called once, on any thread, when that has answered or is
    /// not going to, and `soon` a moment before.
    package func ask(
        _ record: ReferenceRecord, _ reference: NodeID, soon: @escaping @Sendable () -> Void = {},
        done: @escaping @Sendable () -> Void
    ) {
        guard let memory, let domains = memory.otherDomains, let storage = record.storage else {
            return done()
        }
        let last = memory.finding(of: reference)
        var bound = last?.bound
        if last == nil {
            let name = ItemFinder.setting(of: reference)
            let kept = try? index.read { transaction throws(Failure) in try transaction.setting(name) }
            bound = kept ?? nil
        }
        let question = ElsewhereQuestion(
            storage: storage.identifier, domain: storage.domain,
            record: String(decoding: record.target, as: UTF8.self), bound: bound)
        domains.find(question, soon: soon) { [self, bound] answer in
            var finding = ElsewhereFinding(answer, of: record)
            if finding.fate == .silent { finding.place = last?.place }
            if let fresh = finding.bound, fresh != bound {
                try? keep(fresh, of: reference)
            } else {
                finding.bound = bound
            }
            memory.note(finding, of: reference)
            done()
        }
    }

    /// Answers at once, but for a reference whose document is in another domain: the request is
    /// parked while that is asked.
    func answer(
        _ question: LinkQuestion, _ parking: Parking, _ caller: Caller,
        _ reply: @escaping LinkReply,
        of look: () throws(Failure) -> Node?
    ) -> ParkedRequest? {
        let node: Node?
        do throws(Failure) {
            node = try look()
        } catch {
            reply(.failure(error))
            return nil
        }
        guard let node, let record = node.target.flatMap({ ReferenceRecord(target: $0) }),
            isElsewhere(record), memory?.otherDomains != nil
        else {
            reply(result(of: question, node))
            return nil
        }
        let request = parking.enter(process: caller.process) { reply(.failure($0)) }
        // The kernel forgets what it is told as soon as it has been told, and not later: while it waits
        // for the answer, forgetting waits in the kernel. The next who asks may come at once, when the
        // document was moved by a mount of which this one knows nothing.
        ask(record, node.id, soon: { notifier?.invalidateContent(of: node.id, range: nil) }) { [self] in
            if parking.claim(request) { reply(result(of: question, node)) }
        }
        return request
    }

    private func result(of question: LinkQuestion, _ node: Node?) -> Result<[UInt8], Failure> {
        do throws(Failure) {
            switch question {
            case .target: return .success(try target(of: node))
            case .state:
                guard let node, let text = try state(of: node) else {
                    throw Failure(.noAttribute, "the item is no reference")
                }
                return .success(Array(text.utf8))
            }
        } catch {
            return .failure(error)
        }
    }
}
