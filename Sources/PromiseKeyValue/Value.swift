package import PromiseCore

/// What an application keeps under a key: what a property list can hold.
package indirect enum Value: Hashable, Sendable {
    case string(String)
    case integer(Int64)
    /// Neither infinite nor "not a number": JSON has neither.
    case number(Double)
    case bool(Bool)
    case date(Timestamp)
    case data([UInt8])
    case list([Value])
    case map([Key: Value])

    /// Of lists and maps in each other.
    package static let depthMax = 32

    /// What counts against the limits: the bytes of text and data, 8 of a number or date, 1 of a
    /// bool; of what is in a list or map 1 more each, and the bytes of its name.
    package var byteCount: Int {
        switch self {
        case .string(let text): text.utf8.count
        case .integer, .number, .date: 8
        case .bool: 1
        case .data(let bytes): bytes.count
        case .list(let list): list.reduce(0) { $0 + $1.byteCount + 1 }
        case .map(let map): map.reduce(0) { $0 + $1.key.byteCount + $1.value.byteCount + 1 }
        }
    }

    /// 1 for what is neither list nor map.
    package var depth: Int {
        switch self {
        case .list(let list): 1 + (list.map(\.depth).max() ?? 0)
        case .map(let map): 1 + (map.values.map(\.depth).max() ?? 0)
        default: 1
        }
    }

    /// Every number in it is one.
    package var isFinite: Bool {
        switch self {
        case .number(let number): number.isFinite
        case .list(let list): list.allSatisfy(\.isFinite)
        case .map(let map): map.values.allSatisfy(\.isFinite)
        default: true
        }
    }

    // MARK: As JSON

    /// One field that names the kind, as `{"string": "text"}`, so that no kind is taken for
    /// another.
    package var json: JSON {
        switch self {
        case .string(let text): .map(["string": .string(text)])
        case .integer(let integer): .map(["integer": .number(String(integer))])
        case .number(let number): .map(["number": .number(number.description)])
        case .bool(let bool): .map(["bool": .bool(bool)])
        case .date(let time): .map(["date": .number(String(time.rawValue))])
        case .data(let bytes): .map(["data": .string(Base64.text(bytes))])
        case .list(let list): .map(["list": .list(list.map(\.json))])
        case .map(let map): .map(["map": .map(map.mapValues(\.json))])
        }
    }

    /// Nil for a kind that is not known, and for what is none.
    package init?(_ json: JSON) {
        self.init(json, depth: 1)
    }

    private init?(_ json: JSON, depth: Int) {
        guard depth <= Value.depthMax, let fields = json.fields, fields.count == 1,
            let (kind, content) = fields.first
        else {
            return nil
        }
        switch (kind.text, content) {
        case ("string", .string(let text)): self = .string(text)
        case ("integer", .number(let text)):
            guard let integer = Int64(text) else { return nil }
            self = .integer(integer)
        case ("number", .number(let text)):
            guard let number = Double(text), number.isFinite else { return nil }
            self = .number(number)
        case ("bool", .bool(let bool)): self = .bool(bool)
        case ("date", .number(let text)):
            guard let nanoseconds = Int64(text) else { return nil }
            self = .date(Timestamp(nanoseconds: nanoseconds))
        case ("data", .string(let text)):
            guard let bytes = Base64.bytes(text) else { return nil }
            self = .data(bytes)
        case ("list", .list(let list)):
            let values = list.compactMap { Value($0, depth: depth + 1) }
            guard values.count == list.count else { return nil }
            self = .list(values)
        case ("map", .map(let map)):
            let values = map.compactMapValues { Value($0, depth: depth + 1) }
            guard values.count == map.count else { return nil }
            self = .map(values)
        default: return nil
        }
    }
}
