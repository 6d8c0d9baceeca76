package import PromiseCore

/// What an application is told when its values have become others, or could not.
package struct ValueNotice: Hashable, Sendable {
    package enum Reason: String, Hashable, Sendable, CaseIterable {
        /// Another machine wrote.
        case serverChange = "server-change"
        /// What other machines have came here for the first time.
        case initialSync = "initial-sync"
        /// There is no room: for what was set, or for all that came together.
        case quotaViolation = "quota-violation"
        /// The values are those of somebody else now.
        case accountChange = "account-change"
    }

    package var reason: Reason
    package var keys: [Key]

    package init(_ reason: Reason, _ keys: [Key]) {
        self.reason = reason
        self.keys = keys
    }
}

/// The values of one application on one machine.
package struct ValueStore: Hashable, Sendable {
    package let machine: Key
    package private(set) var record: ValueRecord
    /// Whose values they are; nil until they were merged with those of others.
    package private(set) var account: Key?
    /// The provider has all that was written here.
    package private(set) var isSent = true
    private var clock = HybridClock()
    private var others: [Key: JSON] = [:]

    package init(application: Key, machine: Key) {
        self.machine = machine
        record = ValueRecord(application: application)
    }

    package func value(for key: Key) -> Value? { record.entries[key]?.value }
    package var values: [Key: Value] { record.values }

    /// A value that is refused leaves everything as it was.
    package mutating func set(
        _ value: Value, for key: Key, at time: Timestamp, limits: ValueLimits = ValueLimits()
    ) throws(ValueRefusal) {
        try limits.check(value, for: key)
        var next = self
        next.write(value, for: key, at: time)
        // What came from others together may be more than fits; what makes it no larger is taken.
        if next.record.keyCount > max(limits.keyCount, record.keyCount) {
            throw ValueRefusal(
                reason: .quota,
                message: "there are \(record.keyCount) keys, which is all there may be: remove one")
        }
        let count = next.record.byteCount
        if count > max(limits.totalByteCount, record.byteCount) {
            throw ValueRefusal(
                reason: .quota,
                message:
                    "the values would have \(count) bytes together; at most \(limits.totalByteCount) fit: remove some"
            )
        }
        self = next
    }

    /// False when there was none.
    @discardableResult
    package mutating func remove(_ key: Key, at time: Timestamp) -> Bool {
        guard let entry = record.entries[key], !entry.isRemoval else { return false }
        write(nil, for: key, at: time)
        // Of what was sent once the provider is to be told first.
        let countMax =
            account == nil ? ValueRecord.removalCountMax : ValueRecord.untoldRemovalCountMax
        record.forgetOldRemovals(at: time, countMax: countMax)
        return true
    }

    private mutating func write(_ value: Value?, for key: Key, at time: Timestamp) {
        let moment = clock.tick(at: time, after: record.entries[key]?.stamp.time)
        record.put(value, for: key, Stamp(time: moment, machine: machine))
        isSent = false
    }

    /// The domain goes on at another storage, which has nothing of it or what was brought there:
    /// what is here is merged with that, as if no provider had been known.
    package mutating func beginAnew() { (account, isSent) = (nil, false) }

    /// The provider has `sent`; what was written meanwhile it has not.
    package mutating func markSent(_ sent: ValueRecord) {
        if !record.hasNews(for: sent) { isSent = true }
    }

    /// Takes in what the provider has; nil: it has nothing of this application. Returns what the
    /// application is told.
    package mutating func merge(
        _ other: ValueRecord?, account owner: Key, at time: Timestamp,
        limits: ValueLimits = ValueLimits(), isShared: Bool = false
    ) -> [ValueNotice] {
        let before = record
        let isOtherAccount = account.map { !ValueStore.isSame($0, owner) } ?? false
        // Somebody else's values are not mixed with these.
        if isOtherAccount, !isShared { record = ValueRecord(application: record.application) }
        let isFirst = account == nil
        // Nobody known is nobody else: who it was is known until somebody else comes.
        let isUnknownNow = account?.text.hasSuffix("@" + owner.text) ?? false
        if !isUnknownNow { account = owner }
        var changed = other.map { record.merge($0) } ?? []
        for entry in other?.entries.values ?? [:].values {
            clock.observe(entry.stamp.time, at: time)
        }
        record.forgetOldRemovals(at: time, untoldTo: other)
        var notices: [ValueNotice] = []
        if isOtherAccount {
            changed = Set(before.entries.keys).union(record.entries.keys)
                .filter { before.entries[$0]?.value?.json != record.entries[$0]?.value?.json }
                .sorted()
            notices.append(ValueNotice(.accountChange, changed))
        } else if isFirst {
            notices.append(ValueNotice(.initialSync, changed))
        } else if !changed.isEmpty {
            notices.append(ValueNotice(.serverChange, changed))
        }
        if limits.fits(before), !limits.fits(record) {
            notices.append(ValueNotice(.quotaViolation, changed))
        }
        return notices
    }
}

extension ValueStore {
    /// `USER@ROOT`, or the root alone where the user is not known.
    private static func isSame(_ one: Key, _ other: Key) -> Bool {
        one == other || one.text.hasSuffix("@" + other.text) || other.text.hasSuffix("@" + one.text)
    }
}

// MARK: As JSON

extension ValueStore {
    package var json: JSON {
        var fields = others
        fields["schema"] = .number(String(ValueRecord.schema))
        fields["machine"] = .string(machine.text)
        fields["account"] = account.map { .string($0.text) }
        fields["sent"] = .bool(isSent)
        var moment: [Key: JSON] = [:]
        clock.latest.write(into: &moment)
        fields["clock"] = .map(moment)
        fields["record"] = record.json
        return .map(fields)
    }

    package init(_ json: JSON?, of application: Key) throws(RecordTrouble) {
        guard let json, let schema = json["schema"]?.integer(Int.self), schema > 0 else {
            throw .damaged
        }
        guard schema <= ValueRecord.schema else { throw .newer(schema: schema) }
        guard var fields = json.fields, let machine = json["machine"]?.text,
            let latest = json["clock"].flatMap({ HybridTime($0) })
        else { throw .damaged }
        self.init(application: application, machine: Key(machine))
        record = try ValueRecord(json["record"], of: application)
        account = json["account"]?.text.map { Key($0) }
        isSent = json["sent"]?.bool ?? false
        clock = HybridClock(latest: latest)
        for known in ["schema", "machine", "account", "sent", "clock", "record"] as [Key] {
            fields[known] = nil
        }
        others = fields
    }
}
