/// What a person presses.
public enum TerminalKey: Sendable, Equatable {
    case text(String)
    /// `a` of Ctrl-A.
    case control(Character)
    case up, down, left, right, home, end, pageUp, pageDown
    case enter, tab, backspace, delete, escape
}

/// Reads keys from the bytes that a terminal sends (ECMA-48; xterm's control sequences).
public struct TerminalKeys: Sendable {
    private var rest: [UInt8] = []

    public init() {}

    /// Something has begun that may be the Escape key, or not.
    public var isInside: Bool { !rest.isEmpty }

    public mutating func feed(_ bytes: some Sequence<UInt8>) -> [TerminalKey] {
        rest += bytes
        // A terminal that sends no end is not listened to for ever.
        if rest.count > 4096 { rest = [] }
        var keys: [TerminalKey] = []
        while let (key, count) = next() {
            rest.removeFirst(count)
            if let key { keys.append(key) }
        }
        return keys
    }

    /// Nothing followed: an Escape is one.
    public mutating func flush() -> [TerminalKey] {
        defer { rest = [] }
        return rest.first == 0x1B ? [.escape] : []
    }

    private func next() -> (TerminalKey?, Int)? {
        guard let first = rest.first else { return nil }
        switch first {
        case 0x1B: return sequence()
        case 0x0D, 0x0A: return (.enter, 1)
        case 0x09: return (.tab, 1)
        case 0x7F, 0x08: return (.backspace, 1)
        case 0: return (nil, 1)
        case 1...0x1A: return (.control(Character(Unicode.Scalar(first + 0x60))), 1)
        case 0x1C...0x1F: return (nil, 1)
        case 0x20..<0x80: return (.text(String(Unicode.Scalar(first))), 1)
        default: return character(first)
        }
    }

    private func character(_ first: UInt8) -> (TerminalKey?, Int)? {
        guard 0xC2...0xF4 ~= first else { return (nil, 1) }
        let count = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1
        guard rest.count >= count else { return nil }
        guard let text = String(validating: rest[..<count], as: UTF8.self) else { return (nil, 1) }
        return (.text(text), count)
    }

    private func sequence() -> (TerminalKey?, Int)? {
        guard rest.count > 1 else { return nil }
        guard rest[1] == UInt8(ascii: "[") || rest[1] == UInt8(ascii: "O") else {
            return (.escape, 1)
        }
        guard let end = rest[2...].firstIndex(where: { 0x40...0x7E ~= $0 }) else { return nil }
        let number = rest[2..<end].prefix { 0x30...0x39 ~= $0 }.reduce(0) {
            ($0 &* 10) &+ Int($1 - 0x30)
        }
        let key: TerminalKey? =
            switch (rest[end], number) {
            case (UInt8(ascii: "A"), _): .up
            case (UInt8(ascii: "B"), _): .down
            case (UInt8(ascii: "C"), _): .right
            case (UInt8(ascii: "D"), _): .left
            case (UInt8(ascii: "H"), _), (0x7E, 1), (0x7E, 7): .home
            case (UInt8(ascii: "F"), _), (0x7E, 4), (0x7E, 8): .end
            case (0x7E, 3): .delete
            case (0x7E, 5): .pageUp
            case (0x7E, 6): .pageDown
            default: nil
            }
        return (key, end + 1)
    }
}
