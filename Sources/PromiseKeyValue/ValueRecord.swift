package import PromiseCore

/// Why the bytes of a record cannot be used.
package enum RecordTrouble: Error, Hashable, Sendable {
    case damaged
    /// Written by a later version of this program, which means something by it that this one does
    /// not know.
    case newer(schema: Int)

    /// Of what is damaged on this machine, too.
    package func sentenceOfBoth(_ record: String) -> String {
        "\(record) are damaged at the provider and here; 'promisefs verify --provider --repair' keeps "
            + "both files elsewhere and goes on without them"
    }

    /// Of what is at the provider.
    package func sentence(of record: String) -> String {
        switch self {
        case .damaged:
            "\(record) at the provider cannot be used, as that is damaged; what is here is used, and "
                + "'promisefs verify --provider --repair' writes it there"
        case .newer(let schema):
            "\(record) at the provider cannot be used: it has schema \(schema), of a newer version of this program; install that"
        }
    }
}

/// All values of one application as machines exchange them: one object at the provider. Merging is
/// commutative, associative and idempotent, so that all who have seen the same writes have the same
/// values, in whatever order they came.
package struct ValueRecord: Hashable, Sendable {
    package static let schema = 1
    /// Removals are remembered so that who was away does not bring the value back: for so long, and
    /// so many.
    package static let removalMillisecondsMax: UInt64 = 90 * 86_400_000
    package static let removalCountMax = 1024
    /// The same until the provider was told of them.
    package static let untoldRemovalCountMax = 10_000

    package struct Entry: Hashable, Sendable {
        /// Nil: removed, or of a kind that only a later version knows.
        package var value: Value?
        package var stamp: Stamp
        /// What is not understood, and goes back as it came.
        var others: [Key: JSON] = [:]

        /// A kind of value that is not known is a value all the same.
        var isRemoval: Bool { value == nil && others["value"] == nil }

        /// Who has seen both takes the same one of them. The text decides only if two machines have
        /// one name.
        func wins(over other: Entry) -> Bool {
            if stamp != other.stamp { return stamp > other.stamp }
            return other.json.encoded.lexicographicallyPrecedes(json.encoded)
        }
    }

    package let application: Key
    package private(set) var entries: [Key: Entry] = [:]
    private var others: [Key: JSON] = [:]

    package init(application: Key) { self.application = application }

    /// What the application sees.
    package var values: [Key: Value] { entries.compactMapValues(\.value) }
    package var keyCount: Int { entries.values.count { !$0.isRemoval } }
    /// Names do not count.
    package var byteCount: Int { entries.values.reduce(0) { $0 + ($1.value?.byteCount ?? 0) } }

    mutating func put(_ value: Value?, for key: Key, _ stamp: Stamp) {
        entries[key] = Entry(value: value, stamp: stamp)
    }

    /// Returns the keys whose values are others now, sorted.
    package mutating func merge(_ other: ValueRecord) -> [Key] {
        var changed: [Key] = []
        for (key, theirs) in other.entries {
            let ours = entries[key]
            if let ours, !theirs.wins(over: ours) { continue }
            entries[key] = theirs
            // A removal of what is not here is no news.
            if ours?.value?.json != theirs.value?.json { changed.append(key) }
        }
        for (name, field) in other.others {
            if let own = others[name], !own.encoded.lexicographicallyPrecedes(field.encoded) {
                continue
            }
            others[name] = field
        }
        return changed.sorted()
    }

    /// Something here is news to who has `other`. A removal of what they do not have is none, so
    /// that machines that forget removals at different moments do not write for ever.
    package func hasNews(for other: ValueRecord?) -> Bool {
        entries.contains { key, ours in
            guard let theirs = other?.entries[key] else { return !ours.isRemoval }
            return ours.wins(over: theirs)
        }
    }

    /// `untoldTo`: what the provider has, and is not told yet; what is removed of that would come
    /// back. `countMax`: more are forgotten, the oldest first.
    package mutating func forgetOldRemovals(
        at time: Timestamp, untoldTo other: ValueRecord? = nil,
        countMax: Int = ValueRecord.removalCountMax
    ) {
        let now = HybridTime(time).milliseconds
        let removals = entries.filter { $0.value.isRemoval }.sorted {
            $0.value.stamp > $1.value.stamp
        }
        for (index, removal) in removals.enumerated() {
            if let theirs = other?.entries[removal.key], !theirs.isRemoval { continue }
            let end = removal.value.stamp.time.milliseconds + ValueRecord.removalMillisecondsMax
            if index >= countMax || end < now { entries[removal.key] = nil }
        }
    }
}

// MARK: As JSON

extension ValueRecord {
    package var json: JSON {
        var fields = others
        fields["schema"] = .number(String(ValueRecord.schema))
        fields["application"] = .string(application.text)
        fields["entries"] = .map(entries.mapValues(\.json))
        return .map(fields)
    }

    package init(_ json: JSON?, of application: Key) throws(RecordTrouble) {
        guard let json, let schema = json["schema"]?.integer(Int.self), schema > 0 else {
            throw .damaged
        }
        guard schema <= ValueRecord.schema else { throw .newer(schema: schema) }
        guard var fields = json.fields, json["application"]?.text == application.text,
            let entries = json["entries"]?.fields
        else { throw .damaged }
        self.init(application: application)
        for (key, entry) in entries {
            guard let entry = Entry(entry) else { throw .damaged }
            self.entries[key] = entry
        }
        for known in ["schema", "application", "entries"] as [Key] { fields[known] = nil }
        others = fields
    }
}

extension ValueRecord.Entry {
    var json: JSON {
        var fields = others
        if let value { fields["value"] = value.json }
        if isRemoval { fields["removed"] = .bool(true) }
        fields["machine"] = .string(stamp.machine.text)
        stamp.time.write(into: &fields)
        return .map(fields)
    }

    init?(_ json: JSON) {
        guard var fields = json.fields, let time = HybridTime(json),
            let machine = json["machine"]?.text
        else { return nil }
        let value = json["value"].flatMap { Value($0) }
        guard fields["value"] != nil || json["removed"]?.bool == true else { return nil }
        if value != nil { fields["value"] = nil }
        for known in ["removed", "machine", "time", "counter"] as [Key] { fields[known] = nil }
        self.init(value: value, stamp: Stamp(time: time, machine: Key(machine)), others: fields)
    }
}

extension HybridTime {
    func write(into fields: inout [Key: JSON]) {
        fields["time"] = .number(String(milliseconds))
        fields["counter"] = .number(String(counter))
    }

    init?(_ json: JSON) {
        guard let milliseconds = json["time"]?.integer(UInt64.self),
            milliseconds <= HybridTime.millisecondsMax,
            let counter = json["counter"]?.integer(UInt32.self)
        else { return nil }
        self.init(milliseconds: milliseconds, counter: counter)
    }
}
