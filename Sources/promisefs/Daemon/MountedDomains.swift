import Glibc
import PromiseFilesystem
import PromiseKit
import PromiseWire
import Synchronization

/// The other domains of this user, as the mount table of this process has them, for references that
/// lead there. They are asked over their control sockets, each time anew: a path that was right a
/// moment ago may be another document's now.
///
/// **Threads.** Any; `state` is a leaf.
final class MountedDomains: OtherDomains {
    private struct State {
        /// Which mount is of a storage.
        var mounts: [String: UInt64] = [:]
        /// Mounts that did not answer, and until when they are not asked again.
        var silent: [UInt64: ContinuousClock.Instant] = [:]
    }

    private struct Answer: Sendable {
        var mount: MountEntry
        /// Nil: none came.
        var lead: ReferenceLeadDocument?
        var isFound: Bool { lead?.isHere == true && lead?.state == "found" }
    }

    private static let patience = Duration.seconds(1)
    private static let rest = Duration.seconds(2)
    private static let moment = Duration.milliseconds(1)

    private let own: String
    private let state = Mutex(State())

    init(own: String) { self.own = own }

    func find(
        _ question: ElsewhereQuestion, soon: @escaping @Sendable () -> Void,
        answer: @escaping @Sendable (ElsewhereAnswer) -> Void
    ) {
        Task {
            let found = await self.answer(question)
            soon()
            try? await Task.sleep(for: MountedDomains.moment)
            answer(found)
        }
    }

    private func answer(_ question: ElsewhereQuestion) async -> ElsewhereAnswer {
        guard let table = try? MountTable.current() else { return .notMounted }
        let all = table.promiseMounts(of: geteuid()).filter { $0.domain != own && $0.root == [0x2F] }
        let known = state.withLock { $0.mounts[question.storage] }
        let likely = all.filter { $0.identifier == known }
        var answers = await ask(likely, question)
        if !answers.contains(where: { $0.lead?.isHere == true }) {
            answers += await ask(all.filter { $0.identifier != known }, question)
        }
        let here = answers.filter { $0.lead?.isHere == true }
        if let best = here.first(where: { $0.isFound }) ?? here.first, let lead = best.lead {
            state.withLock { $0.mounts[question.storage] = best.mount.identifier }
            return .here(MountedDomains.shown(lead, best.mount))
        }
        // It may be the one that it was, or the one of the name that it had where it was noted.
        let silent = answers.first { answer in
            answer.lead == nil
                && (answer.mount.identifier == known || answer.mount.domain == question.domain)
        }
        return silent.map { .silent(domain: $0.mount.domain) } ?? .notMounted
    }

    private static func shown(
        _ lead: ReferenceLeadDocument, _ mount: MountEntry
    ) -> ElsewhereAnswer.Lead {
        let bytes = lead.pathBytes.flatMap { PercentCoding.decode($0[...]) } ?? []
        let path = Array(bytes.drop { $0 == 0x2F })
        return ElsewhereAnswer.Lead(
            domain: mount.domain, state: lead.state ?? "", path: path,
            place: Location.absolutePath(of: path, on: mount), record: lead.record,
            bound: lead.bound)
    }

    private func ask(
        _ mounts: [MountEntry], _ question: ElsewhereQuestion
    ) async -> [Answer] {
        let now = ContinuousClock.now
        let silent = state.withLock { state in
            state.silent = state.silent.filter { $0.value > now }
            return Set(state.silent.keys)
        }
        return await withTaskGroup(of: Answer.self) { group in
            for mount in mounts {
                group.addTask { [self] in
                    if silent.contains(mount.identifier) { return Answer(mount: mount) }
                    let lead = await lead(mount, question)
                    if lead == nil { rest(mount) }
                    return Answer(mount: mount, lead: lead)
                }
            }
            var answers: [Answer] = []
            for await answer in group {
                answers.append(answer)
                if answer.isFound {
                    group.cancelAll()
                    break
                }
            }
            return answers
        }
    }

    /// Asked once more where a connection broke that had been idle.
    private func lead(
        _ mount: MountEntry, _ question: ElsewhereQuestion
    ) async -> ReferenceLeadDocument? {
        let end = ContinuousClock.now + MountedDomains.patience
        for _ in 0..<2 where ContinuousClock.now < end && !Task.isCancelled {
            let answer = try? await PromiseClient(mount: mount).lead(
                of: question.record, bound: question.bound, within: end - ContinuousClock.now)
            if let answer { return answer }
        }
        return nil
    }

    private func rest(_ mount: MountEntry) {
        // Who was found elsewhere meanwhile asks no further, which says nothing of this one.
        if Task.isCancelled { return }
        state.withLock { $0.silent[mount.identifier] = ContinuousClock.now + MountedDomains.rest }
    }
}
