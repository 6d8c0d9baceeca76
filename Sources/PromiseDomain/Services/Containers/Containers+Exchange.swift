import Logging
import PromiseAccess
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseKeyValue
import PromiseProvider
import PromiseSync
import Synchronization

// How machines come to know of each other's containers.

extension Containers {
    func within(
        _ limit: Duration, _ body: @escaping @Sendable (Containers) async -> Void
    ) async -> Bool {
        do throws(ProviderError) {
            return try await withDeadline(limit, "the provider did not answer") {
                [weak self] () async throws(ProviderError) in
                if let self { await body(self) }
                return true
            }
        } catch {
            return false
        }
    }

    /// What others have is waited for once, and not for long.
    func lookOnce() async {
        guard isOnline, !state.withLock({ $0.hasLooked }) else { return }
        _ = await within(Containers.firstPatience) { await $0.exchangeAll() }
    }

    /// Sends what is new here; waits no longer than that.
    package func send(within limit: Duration) async {
        let end = ContinuousClock.now + limit
        while unsentCount > 0, isOnline, ContinuousClock.now < end {
            _ = await within(limit) { await $0.exchangeAll() }
            // A folder that was just made has no identifier before it is at the provider.
            if unsentCount > 0 { try? await Task.sleep(for: .milliseconds(100)) }
        }
    }

    func sendSoon() {
        let isFirst = state.withLock { state in
            defer { state.isSending = true }
            return !state.isSending
        }
        guard isFirst else { return }
        Task { [weak self] in
            let end = ContinuousClock.now + Containers.sendingPatience
            while let self, ContinuousClock.now < end, !self.state.withLock({ $0.isOver }) {
                try? await Task.sleep(for: .milliseconds(100))
                let unsent = ((try? await self.containers()) ?? [:]).filter { !$0.value.isSent }
                if unsent.isEmpty { break }
                for key in unsent.keys { await self.exchange(key) }
            }
            self?.state.withLock { $0.isSending = false }
        }
    }

    /// Records that are new here, or not sent yet, or gone there, and a few others, which somebody may
    /// have changed: all of them in turn, and at once when the daemon starts and when somebody syncs.
    package func exchangeAll(isThorough: Bool = false) async {
        guard isOnline, let objects = tree.provider.privateObjects,
            let known = try? await containers()
        else { return }
        let isFirst = state.withLock { !$0.hasLooked }
        let listed: [PrivateName]
        do throws(ProviderError) {
            listed = try await withDeadline(
                configuration.requestDeadline, "the provider did not answer"
            ) { () async throws(ProviderError) in try await objects.list(.containers) }
        } catch {
            return
        }
        let there = Set(
            listed.filter { $0.name.hasSuffix(".json") }.map { Key(String($0.name.dropLast(5))) })
        var settled: [Key] = []
        for key in there.union(known.keys).sorted() {
            let container = known[key]
            let isSettled = there.contains(key) && container?.isSent == true
                && container.flatMap { try? renewed($0) } == container
            if !isSettled || isFirst || isThorough { await exchange(key) } else { settled.append(key) }
        }
        for key in nextOf(settled) { await exchange(key) }
        state.withLock { $0.hasLooked = true }
    }

    /// Those that come after the last that were looked at.
    private func nextOf(_ settled: [Key]) -> [Key] {
        state.withLock { state in
            let after = state.lastLooked.flatMap { last in settled.firstIndex { $0 > last } } ?? 0
            let next = Array((settled[after...] + settled[..<after]).prefix(Containers.settledCount))
            state.lastLooked = next.last
            return next
        }
    }

    func exchange(_ key: Key) async {
        guard isOnline, let objects = tree.provider.privateObjects, let place = place(key) else {
            return
        }
        await turns.take(key)
        defer { turns.giveBack(key) }
        do throws(Failure) {
            for _ in 0..<Containers.attemptsMax {
                if try await isExchanged(key, place, objects) { break }
            }
            state.withLock { $0.trouble[key] = nil }
        } catch {
            let sentence = error.message
            let isNews = state.withLock {
                $0.trouble.updateValue(sentence, forKey: key) != sentence
            }
            guard isNews else { return }
            logger.warning(
                "a container is not exchanged",
                metadata: ["application": "\(key)", "reason": "\(sentence)"])
        }
    }

    func call<Value: Sendable>(
        _ body: @escaping @Sendable () async throws(ProviderError) -> Value
    ) async -> Result<Value, ProviderError> {
        do throws(ProviderError) {
            return .success(
                try await withDeadline(
                    configuration.requestDeadline, "the provider did not answer", body))
        } catch {
            return .failure(error)
        }
    }

    /// Takes in what the provider has, and writes over it what is new here. False when somebody
    /// else was faster.
    private func isExchanged(
        _ key: Key, _ place: PrivateName, _ objects: any PrivateObjects
    ) async throws(Failure) -> Bool {
        let reading = await call { () async throws(ProviderError) in try await objects.read(place) }
        let found: PrivateObject?
        switch reading {
        case .success(let object): found = object
        case .failure(let error): throw error.failure
        }
        guard let ours = try await taken(found, key), !ours.isSent, !configuration.isReadOnly,
            ours.record.folder.identifier != nil
        else { return true }
        let (bytes, base) = (ours.record.json.encoded, found?.version)
        let writing = await call { () async throws(ProviderError) in
            try await objects.write(bytes, to: place, base: base)
        }
        switch writing {
        case .success: break
        case .failure(let error) where error.code == .conflict: return false
        case .failure(let error): throw error.failure
        }
        let kept = try await change(key) { $0?.sent(as: ours) ?? ours.sent(as: ours) }
        return kept?.isSent ?? true
    }

    /// What is known with what the provider has, and of the folder as it is now.
    private func taken(
        _ found: PrivateObject?, _ key: Key
    ) async throws(Failure) -> KnownContainer? {
        let before = try await containers()[key]
        var container = before
        if let found {
            do throws(RecordTrouble) {
                let theirs = try ContainerRecord(JSONReader.read(found.bytes), of: key)
                if container != nil {
                    container?.merge(theirs)
                } else {
                    container = KnownContainer(
                        record: theirs, entry: nil, isSent: true, wasSent: true)
                }
            } catch {
                throw Failure(.corrupted, error.sentence(of: PrivateName.Kind.containers.record(of: key)))
            }
        } else if container?.wasSent == true {
            container = nil
        }
        if let known = container { container = try renewed(known) }
        let result = container
        let kept = try await change(key) { $0 == before ? result : $0 }
        // It was changed here meanwhile.
        return kept == result ? result : try await taken(found, key)
    }

    /// With what the folder is called now, so that others find it, too.
    private func renewed(_ container: KnownContainer) throws(Failure) -> KnownContainer {
        let known = container.record.folder
        let finding = try tree.look(for: known, bound: container.entry)
        guard let entry = finding.entry else { return container }
        var result = container
        result.entry = entry.id
        let now = try tree.key(of: NamedItem(entry)).key
        // Each machine has identifiers of its own where a store has none: whose it is, is no news.
        let isOfOther = known.machine != nil && known.machine != now.machine
        guard now.path != known.path || now.identifier != known.identifier && !isOfOther else {
            return result
        }
        if now.identifier == nil { return result }
        result.record.folder = now
        result.isSent = false
        return result
    }
}
