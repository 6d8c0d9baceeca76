import PromiseCore

extension PickerRequest {
    /// What the person is asked, and who asks.
    public var question: String { TerminalText.title(self) }
}

/// Text in columns of a terminal.
enum TerminalText {
    /// What strangers wrote, with nothing in it that a terminal obeys.
    static func shown(_ bytes: [UInt8]) -> String { escapedForTerminal(escapedForDisplay(bytes)) }

    static func width(_ text: String) -> Int { text.reduce(0) { $0 + width($1) } }

    /// A picture has two columns, whatever is joined to it.
    private static func width(_ character: Character) -> Int {
        guard let first = character.unicodeScalars.first else { return 0 }
        if first.value >= 0x300, first.properties.isEmojiPresentation { return 2 }
        return character.unicodeScalars.reduce(0) { $0 + width($1) }
    }

    /// Two columns for what is wide in East Asian writing (Unicode, UAX 11), none for what is written
    /// over a letter; vowels that stand beside theirs have one.
    private static func width(_ scalar: Unicode.Scalar) -> Int {
        if scalar.value < 0x300 { return 1 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: break
        }
        switch scalar.value {
        // The later parts of a syllable of Hangul.
        case 0x1160...0x11FF, 0xD7B0...0xD7FF: return 0
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF,
            0xA000...0xA4CF,
            0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6,
            0x1F300...0x1F64F, 0x1F900...0x1F9FF, 0x20000...0x3FFFD:
            return 2
        default: return 1
        }
    }

    /// Exactly so many columns. What is too long ends in `~`, or begins with it.
    static func fitted(_ text: String, _ columns: Int, keepsEnd: Bool = false) -> String {
        guard columns > 0 else { return "" }
        let whole = width(text)
        if whole <= columns { return text + String(repeating: " ", count: columns - whole) }
        var result = ""
        var used = 1
        for character in keepsEnd ? Array(text.reversed()) : Array(text) {
            let next = width(character)
            if used + next > columns { break }
            used += next
            result.append(character)
        }
        if keepsEnd { result = "~" + String(result.reversed()) } else { result += "~" }
        return result + String(repeating: " ", count: columns - used)
    }

    static func size(_ bytes: UInt64) -> String {
        if bytes < 1000 { return "\(bytes) B" }
        var value = Double(bytes)
        for unit in ["kB", "MB", "GB", "TB", "PB"] {
            value /= 1000
            if value < 999.5 || unit == "PB" {
                if value >= 10 { return "\(Int(value.rounded())) \(unit)" }
                let tenths = Int((value * 10).rounded())
                return "\(tenths / 10).\(tenths % 10) \(unit)"
            }
        }
        return "\(bytes) B"
    }

    /// `2026-01-31 12:00` of RFC 3339.
    static func date(_ text: String) -> String {
        String(text.prefix(16)).replacing("T", with: " ")
    }

    /// `work:/a/b`.
    static func place(_ listing: PickerListing?) -> String {
        switch listing?.view {
        case .folder(let folder)?: "\(escapedForTerminal(folder.domain)):/\(shown(folder.path))"
        case .everywhere(let text)?: "everywhere: \(escapedForTerminal(text))"
        case .recent?: "recent documents"
        case nil: ""
        }
    }

    static func title(_ request: PickerRequest) -> String {
        let noun =
            request.picksFolders
            ? request.allowsMultiple ? "folders" : "a folder"
            : request.allowsMultiple ? "documents" : "a document"
        if let title = request.title { return who(request) + escapedForTerminal(title) }
        return who(request) + words(request.mode, noun)
    }

    /// Who asks is said by us, whatever the title says.
    private static func who(_ request: PickerRequest) -> String {
        guard let name = request.requester ?? request.application else { return "" }
        return "\(escapedForTerminal(name)): "
    }

    private static func words(_ mode: PickerRequest.Mode, _ noun: String) -> String {
        switch mode {
        case .open: "Open \(noun)"
        case .import: "Import \(noun)"
        case .move: "Move to"
        case .export: "Export to"
        case .create: "Create a document"
        case .save: "Save as"
        }
    }

    /// Each choice that goes with it, and what is chosen.
    static func choices(_ machine: PickerMachine) -> [String] {
        zip(machine.request.choices, machine.chosen).map { choice, option in
            shown(Array("\(choice.label): \(choice.names[option])".utf8))
        }
    }
}
