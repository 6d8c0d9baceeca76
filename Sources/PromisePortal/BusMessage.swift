import CSystemBus
import Glibc

/// What went wrong with the bus: the number that sd-bus(3) gives, and where.
struct BusError: Error {
    var number: CInt
    var call: StaticString

    @discardableResult
    static func check(_ result: CInt, _ call: StaticString) throws(BusError) -> CInt {
        if result < 0 { throw BusError(number: -result, call: call) }
        return result
    }
}

/// A value of a message (D-Bus Specification, Type System), as far as dialogs have them.
enum BusValue: Equatable {
    case text(String)
    case number(UInt64)
    case flag(Bool)
    case bytes([UInt8])
    case list([BusValue])

    var text: String? { if case .text(let text) = self { text } else { nil } }
    var number: UInt64? { if case .number(let number) = self { number } else { nil } }
    var flag: Bool? { if case .flag(let flag) = self { flag } else { nil } }
    var list: [BusValue]? { if case .list(let list) = self { list } else { nil } }

    /// Paths are sent with a NUL at their end.
    var path: [UInt8]? {
        guard case .bytes(let bytes) = self else { return nil }
        let path = Array(bytes.prefix { $0 != 0 })
        return path.isEmpty ? nil : path
    }
}

extension CChar {
    init(type: Character) { self = CChar(bitPattern: type.asciiValue ?? 0) }
}

/// Reads a message that was received, from its beginning to its end.
struct BusReader {
    let message: OpaquePointer

    /// All values of the message.
    func values() throws(BusError) -> [BusValue] { try rest() }

    /// What is left of the message, or of the container that was entered.
    private func rest() throws(BusError) -> [BusValue] {
        var values: [BusValue] = []
        while let value = try next() { values.append(value) }
        return values
    }

    /// Nil at the end.
    private func next() throws(BusError) -> BusValue? {
        var type: CChar = 0
        var contents: UnsafePointer<CChar>?
        let found = sd_bus_message_peek_type(message, &type, &contents)
        guard try BusError.check(found, "peek") > 0 else { return nil }
        switch Character(UnicodeScalar(UInt8(bitPattern: type))) {
        case "s", "o", "g": return .text(try text(type))
        case "b":
            var flag: CInt = 0
            try basic(type, &flag)
            return .flag(flag != 0)
        case "a" where contents.map { String(cString: $0) } == "y": return try bytes()
        case "a", "r", "e", "v":
            try BusError.check(sd_bus_message_enter_container(message, type, contents), "enter")
            let inside = try rest()
            try BusError.check(sd_bus_message_exit_container(message), "exit")
            if type == CChar(type: "v"), let first = inside.first { return first }
            return .list(inside)
        default: return .number(try number(type))
        }
    }

    private func basic<Value>(_ type: CChar, _ value: inout Value) throws(BusError) {
        let result = withUnsafeMutablePointer(to: &value) {
            sd_bus_message_read_basic(message, type, $0)
        }
        try BusError.check(result, "read")
    }

    private func text(_ type: CChar) throws(BusError) -> String {
        var text: UnsafePointer<CChar>?
        try basic(type, &text)
        return text.map { String(cString: $0) } ?? ""
    }

    /// Eight bytes have room for each of the others; what is shorter begins at the first.
    private func number(_ type: CChar) throws(BusError) -> UInt64 {
        var number: UInt64 = 0
        try basic(type, &number)
        return UInt64(littleEndian: number)
    }

    private func bytes() throws(BusError) -> BusValue {
        var start: UnsafeRawPointer?
        var count = 0
        let result = sd_bus_message_read_array(message, CChar(type: "y"), &start, &count)
        try BusError.check(result, "array")
        guard let start else { return .bytes([]) }
        return .bytes(Array(UnsafeRawBufferPointer(start: start, count: count)))
    }
}

/// Writes an answer.
struct BusWriter {
    let message: OpaquePointer

    func text(_ text: String) throws(BusError) {
        try BusError.check(
            sd_bus_message_append_basic(message, CChar(type: "s"), text), "append")
    }

    func number(_ number: UInt32) throws(BusError) {
        var number = number
        try BusError.check(
            sd_bus_message_append_basic(message, CChar(type: "u"), &number), "append")
    }

    func flag(_ flag: Bool) throws(BusError) {
        var number: CInt = flag ? 1 : 0
        try BusError.check(
            sd_bus_message_append_basic(message, CChar(type: "b"), &number), "append")
    }

    /// With a NUL at its end.
    func path(_ path: [UInt8]) throws(BusError) {
        let bytes = path + [0]
        try BusError.check(
            sd_bus_message_append_array(message, CChar(type: "y"), bytes, bytes.count), "append")
    }

    func container(
        _ type: Character, _ contents: String, _ body: () throws(BusError) -> Void
    ) throws(BusError) {
        try BusError.check(
            sd_bus_message_open_container(message, CChar(type: type), contents), "open")
        try body()
        try BusError.check(sd_bus_message_close_container(message), "close")
    }

    /// An entry of `a{sv}`.
    func entry(
        _ key: String, _ contents: String, _ body: () throws(BusError) -> Void
    ) throws(BusError) {
        try container("e", "sv") { () throws(BusError) in
            try text(key)
            try container("v", contents, body)
        }
    }
}
