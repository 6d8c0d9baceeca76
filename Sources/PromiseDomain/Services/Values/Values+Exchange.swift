import Logging
import PromiseAccess
import PromiseCore
import PromiseKeyValue
import PromiseProvider
import PromiseSystem
import Synchronization

/// Values as the provider has them: taken in here, and written there where they are new.
extension Values {
    func sendSoon(_ name: Key) {
        guard state.withLock({ $0.waiting.insert(name).inserted }) else { return }
        Task { [weak self] in
            try? await Task.sleep(for: Values.quietTime)
            _ = self?.state.withLock { $0.waiting.remove(name) }
            await self?.exchange(name)
        }
    }

    /// One at a time for each application; who comes meanwhile has it done once more.
    func exchange(_ name: Key) async {
        let isFirst = state.withLock { state in
            if state.exchanging.insert(name).inserted { return true }
            state.again.insert(name)
            return false
        }
        guard isFirst else { return }
        repeat {
            await tryExchange(name)
        } while state.withLock { state in
            if state.again.remove(name) != nil, !state.isOver { return true }
            state.exchanging.remove(name)
            return false
        }
    }

    private func tryExchange(_ name: Key) async {
        guard needs.isOnline(), let objects = needs.objects(),
            let place = PrivateName(needs.kind, name.text + ".json")
        else {
            return
        }
        do throws(Failure) {
            for _ in 0..<Values.attemptsMax {
                if try await isExchanged(name, place, objects) { break }
            }
            state.withLock { $0.trouble[name] = nil }
        } catch {
            let sentence = error.message
            let isNews = state.withLock {
                $0.trouble.updateValue(sentence, forKey: name) != sentence
            }
            guard isNews else { return }
            logger.warning(
                "values are not exchanged",
                metadata: ["application": "\(name)", "reason": "\(sentence)"])
        }
    }

    /// Takes in what the provider has, and writes over it what is new here. False when somebody
    /// else was faster.
    private func isExchanged(
        _ name: Key, _ place: PrivateName, _ objects: any PrivateObjects
    ) async throws(Failure) -> Bool {
        let late = "the provider did not answer"
        let found: PrivateObject?
        do throws(ProviderError) {
            found = try await withDeadline(needs.deadline, late) { () async throws(ProviderError) in
                try await objects.read(place)
            }
        } catch {
            throw error.failure
        }
        let merged = try await onThread { () throws(Failure) in try self.merge(found, into: name) }
        tell(merged.notices, of: name)
        if needs.isReadOnly { return true }
        guard merged.ours.hasNews(for: merged.theirs) else {
            try await markSent(merged.ours, of: name)
            return true
        }
        let (bytes, base) = (merged.ours.json.encoded, found?.version)
        do throws(ProviderError) {
            _ = try await withDeadline(needs.deadline, late) { () async throws(ProviderError) in
                try await objects.write(bytes, to: place, base: base)
            }
        } catch {
            if error.code == .conflict { return false }
            throw error.failure
        }
        try await markSent(merged.ours, of: name)
        return true
    }

    private func markSent(_ record: ValueRecord, of name: Key) async throws(Failure) {
        try await onThread { () throws(Failure) in
            let before = try self.load(name)
            var store = before
            store.markSent(record)
            try self.keep(store, over: before)
        }
    }

    /// On the thread.
    private func merge(
        _ found: PrivateObject?, into name: Key
    ) throws(Failure) -> (ours: ValueRecord, theirs: ValueRecord?, notices: [ValueNotice]) {
        var theirs: ValueRecord?
        if let found {
            do throws(RecordTrouble) {
                theirs = try ValueRecord(JSONReader.read(found.bytes), of: name)
            } catch {
                let record = needs.kind.record(of: name)
                let isNowhereWhole = error == .damaged && isDamaged(name)
                throw Failure(.corrupted, isNowhereWhole ? error.sentenceOfBoth(record) : error.sentence(of: record))
            }
        }
        if theirs != nil { try setAsideDamaged(name) }
        let before = try load(name)
        var store = before
        let notices = store.merge(theirs, account: Key(needs.account()), at: clock.now(), limits: needs.limits,
            isShared: needs.isShared)
        try keep(store, over: before)
        return (store.record, theirs, notices)
    }
}
