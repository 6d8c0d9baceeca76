/// One server-sent event (WHATWG HTML, section 9.2): a name and its data.
public struct ServerEvent: Sendable, Equatable {
    public var name: String
    public var data: String

    public init(name: String, data: String) {
        self.name = name
        self.data = data
    }

    /// As it is sent. JSON data is one line; text of several lines becomes several `data` fields.
    public var encoded: String {
        var result = "event: \(name)\n"
        for line in data.split(separator: "\n", omittingEmptySubsequences: false) { result += "data: \(line)\n" }
        return result + "\n"
    }

    /// Keeps a connection from looking dead; readers skip it.
    public static let keepAlive = ": keep-alive\n\n"
}

/// Reads server-sent events from bytes that arrive in pieces of any size.
public struct ServerEventParser: Sendable {
    /// A line, or the data of one event, grew beyond the limit.
    public struct Overflow: Error {}

    private let byteCountMax: Int
    private var line: [UInt8] = []
    private var lastWasReturn = false
    private var isAtStart = true
    private var name = ""
    private var data: [String] = []
    /// With one for the end of each line, so that empty ones count as well.
    private var dataByteCount = 0

    /// `byteCountMax`: of a line, and of the data of an event. Without a limit a broken peer could fill the memory.
    public init(byteCountMax: Int = 16 << 20) { self.byteCountMax = byteCountMax }

    /// The events that these bytes complete.
    public mutating func feed(_ bytes: some Sequence<UInt8>) throws(Overflow) -> [ServerEvent] {
        var events: [ServerEvent] = []
        for byte in bytes {
            let followsReturn = lastWasReturn
            lastWasReturn = byte == 0x0D
            switch byte {
            case 0x0A where followsReturn: continue
            case 0x0A, 0x0D:
                if let event = endLine() { events.append(event) }
                guard dataByteCount <= byteCountMax else { throw Overflow() }
            default:
                guard line.count < byteCountMax else { throw Overflow() }
                line.append(byte)
            }
        }
        return events
    }

    private mutating func endLine() -> ServerEvent? {
        defer { line.removeAll(keepingCapacity: true) }
        if isAtStart {
            isAtStart = false
            if line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
        }
        if line.isEmpty { return dispatch() }
        let colon = line.firstIndex(of: UInt8(ascii: ":"))
        if colon == 0 { return nil }  // A comment.
        let field = String(decoding: line[..<(colon ?? line.count)], as: UTF8.self)
        var value = colon.map { line[($0 + 1)...] } ?? []
        if value.first == 0x20 { value.removeFirst() }
        switch field {
        case "event": name = String(decoding: value, as: UTF8.self)
        case "data":
            data.append(String(decoding: value, as: UTF8.self))
            dataByteCount += value.count + 1
        default: break  // Unknown fields are skipped, `id` and `retry` are not used here.
        }
        return nil
    }

    private mutating func dispatch() -> ServerEvent? {
        defer {
            name = ""
            data = []
            dataByteCount = 0
        }
        guard !data.isEmpty else { return nil }
        return ServerEvent(name: name.isEmpty ? "message" : name, data: data.joined(separator: "\n"))
    }
}
