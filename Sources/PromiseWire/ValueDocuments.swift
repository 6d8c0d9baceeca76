/// What an application keeps under a key: one field that names the kind, as `{"string": "text"}`.
/// Data is Base64, a date is nanoseconds since 1970.
public indirect enum KeptValue: Codable, Sendable, Hashable {
    case string(String)
    case integer(Int64)
    case number(Double)
    case bool(Bool)
    case date(nanoseconds: Int64)
    case data(base64: String)
    case list([KeptValue])
    case map([String: KeptValue])

    private enum Kind: String, CodingKey {
        case string, integer, number, bool, date, data, list, map
    }

    /// Deeper ones are refused before they use up the stack.
    private static let depthMax = 40

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Kind.self)
        let kinds = container.allKeys
        guard kinds.count == 1, let kind = kinds.first, decoder.codingPath.count < 3 * Self.depthMax
        else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "no value"))
        }
        switch kind {
        case .string: self = .string(try container.decode(String.self, forKey: kind))
        case .integer: self = .integer(try container.decode(Int64.self, forKey: kind))
        case .number: self = .number(try container.decode(Double.self, forKey: kind))
        case .bool: self = .bool(try container.decode(Bool.self, forKey: kind))
        case .date: self = .date(nanoseconds: try container.decode(Int64.self, forKey: kind))
        case .data: self = .data(base64: try container.decode(String.self, forKey: kind))
        case .list: self = .list(try container.decode([KeptValue].self, forKey: kind))
        case .map: self = .map(try container.decode([String: KeptValue].self, forKey: kind))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Kind.self)
        switch self {
        case .string(let text): try container.encode(text, forKey: .string)
        case .integer(let integer): try container.encode(integer, forKey: .integer)
        // JSON has no such number: who reads it says that it is no value.
        case .number(let number) where !number.isFinite: try container.encodeNil(forKey: .number)
        case .number(let number): try container.encode(number, forKey: .number)
        case .bool(let bool): try container.encode(bool, forKey: .bool)
        case .date(let nanoseconds): try container.encode(nanoseconds, forKey: .date)
        case .data(let text): try container.encode(text, forKey: .data)
        case .list(let list): try container.encode(list, forKey: .list)
        case .map(let map): try container.encode(map, forKey: .map)
        }
    }
}

/// `POST /v1/values`: sets a value, or removes it when there is none.
public struct KeptValueDocument: Codable, Sendable, Hashable {
    /// As `com.example.editor`.
    public var application: String
    public var key: String
    public var value: KeptValue?

    public init(application: String, key: String, value: KeptValue?) {
        self.application = application
        self.key = key
        self.value = value
    }
}

/// `GET /v1/values`: all values of an application, sorted by key, or one of them.
public struct KeptValuesDocument: Codable, Sendable, Hashable {
    public var application: String
    public var values: [KeptValueDocument]
    /// Why they are not exchanged with other machines; missing when they are.
    public var trouble: String?

    public init(application: String, values: [KeptValueDocument], trouble: String?) {
        self.application = application
        self.values = values
        self.trouble = trouble
    }
}

/// `POST /v1/values/synchronize`.
public struct ValuesRequest: Codable, Sendable, Hashable {
    public var application: String

    public init(application: String) { self.application = application }
}

/// The data of an event `changed` of `GET /v1/values/events`.
public struct ValueNoticeDocument: Codable, Sendable, Hashable {
    /// `server-change`, `initial-sync`, `quota-violation` or `account-change`.
    public var reason: String
    public var keys: [String]

    public init(reason: String, keys: [String]) {
        self.reason = reason
        self.keys = keys
    }
}
