import PromiseKit

/// What a terminal shows of a picker, and what keys mean there. It draws lines and reads keys;
/// whoever owns the terminal does the rest.
public struct TerminalScreen: Sendable {
    public struct Size: Sendable, Equatable {
        public var columns: Int
        public var rows: Int

        public init(columns: Int, rows: Int) {
            self.columns = columns
            self.rows = rows
        }
    }

    enum Prompt: Sendable, Equatable { case filter, search, name, folder, rename(PickerItem) }
    private enum Panel: Sendable { case list, places, choices, help }

    private static let keys: [FolderListing.Key] = [.name, .date, .size, .kind, .state, .tags]

    private static let textByteCountMax = 1024

    public var size: Size
    /// Without, nothing but characters is written.
    public let hasColours: Bool
    private var prompt: Prompt?
    private var text = ""
    /// What stood there at first: a name that is no text is not that text.
    private var given = ""
    private var panel = Panel.list
    private var placeCursor = 0
    private var choiceCursor = 0
    private var helpTop = 0
    private var top = 0

    public init(size: Size, hasColours: Bool) {
        self.size = size
        self.hasColours = hasColours
    }

    private var rowCount: Int { max(1, size.rows - 3) }

    // MARK: Keys

    /// Of keys that came together. What was pasted is one text, not a list for each of its letters.
    public mutating func press(_ keys: [TerminalKey], _ machine: PickerMachine) -> [PickerEvent] {
        var events: [PickerEvent] = []
        for event in keys.flatMap({ press($0, machine) }) {
            if case .filter = event, case .filter? = events.last { events.removeLast() }
            events.append(event)
        }
        return events
    }

    /// What a key means for the machine.
    public mutating func press(_ key: TerminalKey, _ machine: PickerMachine) -> [PickerEvent] {
        if let prompt { return type(key, prompt, machine) }
        switch panel {
        case .help:
            // Where the screen has no room for all of it, each key shows more.
            helpTop += rowCount
            if helpTop >= TerminalScreen.helpLines.count || key == .escape || key == .text("q") { panel = .list }
            return []
        case .places: return choose(key, machine)
        case .choices: return turn(key, machine)
        case .list: return move(key, machine) ?? command(key, machine)
        }
    }

    private func move(_ key: TerminalKey, _ machine: PickerMachine) -> [PickerEvent]? {
        switch key {
        case .up, .text("k"), .control("p"): [.step(-1)]
        case .down, .text("j"), .control("n"): [.step(1)]
        case .pageUp, .control("b"), .text("b"): [.step(-rowCount)]
        case .pageDown, .control("f"), .text(" "): [.step(rowCount)]
        case .control("u"): [.step(-rowCount / 2)]
        case .control("d"): [.step(rowCount / 2)]
        case .home, .text("g"): [.go(to: 0)]
        case .end, .text("G"): [.end]
        case .left, .text("h"), .backspace: [.up]
        case .right, .text("l"): [.enterFolder]
        case .enter: [.enter]
        case .tab: [.mark]
        default: nil
        }
    }

    private mutating func command(_ key: TerminalKey, _ machine: PickerMachine) -> [PickerEvent] {
        switch key {
        case .text("q"), .escape, .control("c"), .control("g"): return [.cancel]
        case .text("/"): ask(.filter, machine.listing?.filter ?? "")
        case .text("f"): ask(.search, "")
        case .text("s"): return [.confirm]
        case .text("o"):
            let now = TerminalScreen.keys.firstIndex(of: machine.listing?.key ?? .name) ?? 0
            return [.sort(TerminalScreen.keys[(now + 1) % TerminalScreen.keys.count])]
        case .text("O"): return [.reverse]
        case .text("."): return [.toggleHidden]
        case .text("R"), .control("l"): return [.changed]
        case .text("p"):
            panel = .places
            placeCursor = 0
        case .text("c") where !machine.request.choices.isEmpty: panel = .choices
        case .text("?"): (panel, helpTop) = (.help, 0)
        case .text("n") where machine.request.hasName:
            ask(.name, String(decoding: machine.name, as: UTF8.self))
        case .text("+") where machine.request.picksPlace: ask(.folder, "")
        case .text("r") where machine.request.picksPlace:
            // What is renamed is what the person sees now, whatever is at the cursor by then.
            guard let item = machine.current else { break }
            ask(.rename(item), String(decoding: item.name, as: UTF8.self))
        default: break
        }
        return []
    }

    private mutating func ask(_ prompt: Prompt, _ text: String) {
        self.prompt = prompt
        (self.text, given) = (text, text)
    }

    private mutating func choose(_ key: TerminalKey, _ machine: PickerMachine) -> [PickerEvent] {
        switch key {
        case .up, .text("k"): placeCursor = max(0, placeCursor - 1)
        case .down, .text("j"): placeCursor = min(max(0, machine.places.count - 1), placeCursor + 1)
        case .enter, .right, .text("l"):
            panel = .list
            guard machine.places.indices.contains(placeCursor) else { return [] }
            return [machine.places[placeCursor].folder.map { .visit($0) } ?? .showRecent]
        case .escape, .text("p"), .text("q"), .left, .text("h"): panel = .list
        case .control("c"): return [.cancel]
        default: break
        }
        return []
    }

    /// Among the choices that go with it: each key gives one the next of its options.
    private mutating func turn(_ key: TerminalKey, _ machine: PickerMachine) -> [PickerEvent] {
        let choices = machine.request.choices
        switch key {
        case .up, .text("k"): choiceCursor = max(0, choiceCursor - 1)
        case .down, .text("j"): choiceCursor = min(choices.count - 1, choiceCursor + 1)
        case .enter, .right, .text(" "), .text("l"), .left, .text("h"):
            guard choices.indices.contains(choiceCursor) else { return [] }
            let step = key == .left || key == .text("h") ? -1 : 1
            let count = choices[choiceCursor].names.count
            let option = (machine.chosen[choiceCursor] + step + count) % count
            return [.choose(choice: choiceCursor, option: option)]
        case .escape, .text("c"), .text("q"): panel = .list
        case .control("c"): return [.cancel]
        default: break
        }
        return []
    }

    private mutating func type(_ key: TerminalKey, _ prompt: Prompt, _ machine: PickerMachine)
        -> [PickerEvent]
    {
        switch key {
        case .text(let typed):
            // No name is longer, in any writing.
            if text.utf8.count < TerminalScreen.textByteCountMax { text += typed }
        case .backspace: if !text.isEmpty { text.removeLast() }
        case .control("u"): text = ""
        case .control("c"): return [.cancel]
        case .up: return [.step(-1)]
        case .down: return [.step(1)]
        case .escape:
            self.prompt = nil
            return prompt == .filter ? [.filter("")] : []
        case .enter:
            self.prompt = nil
            let bytes = Array(text.utf8)
            switch prompt {
            case .filter: return [.filter(text)]
            case .search: return [.search(text)]
            case .name where text == given, .rename where text == given: return []
            case .name: return [.name(bytes)]
            case .folder: return [.makeFolder(bytes)]
            case .rename(let item): return [.renameItem(item, to: bytes)]
            }
        default: return []
        }
        return prompt == .filter ? [.filter(text)] : []
    }

    // MARK: Drawing

    /// One text a line, each of exactly the screen's columns; with what should be in sight.
    public mutating func draw(_ machine: PickerMachine) -> (lines: [String], sight: PickerEvent) {
        if machine.cursor < top { top = machine.cursor }
        if machine.cursor >= top + rowCount { top = machine.cursor - rowCount + 1 }
        top = max(0, min(top, (machine.total ?? 0) - 1))
        var lines = [headLine(machine)]
        switch panel {
        case .help: lines += help()
        case .places: lines += placeLines(machine)
        case .choices: lines += choiceLines(machine)
        case .list: lines += (0..<rowCount).map { row(top + $0, machine) }
        }
        lines = Array(lines.prefix(max(1, size.rows - 2)))
        lines.append(statusLine(machine))
        lines.append(lastLine(machine))
        return (Array(lines.suffix(size.rows)), .see(first: top, count: rowCount))
    }

    private func headLine(_ machine: PickerMachine) -> String {
        let title = TerminalText.title(machine.request)
        let place = TerminalText.place(machine.listing)
        let room = size.columns - title.count - 2
        let line =
            room < 8 ? place : "\(title)  \(TerminalText.fitted(place, room, keepsEnd: true))"
        return styled(TerminalText.fitted(line, size.columns), "1")
    }

    private func row(_ index: Int, _ machine: PickerMachine) -> String {
        guard let total = machine.total else {
            return TerminalText.fitted(index == top ? "  listing…" : "", size.columns)
        }
        if total == 0, index == 0 {
            let isFiltered = !(machine.listing?.filter ?? "").isEmpty
            return TerminalText.fitted(
                isFiltered ? "  nothing has that in its name" : "  nothing here", size.columns)
        }
        guard index < total else { return String(repeating: " ", count: size.columns) }
        guard let item = machine.item(index) else {
            return TerminalText.fitted("  …", size.columns)
        }
        let isCurrent = index == machine.cursor
        let marks = (isCurrent ? ">" : " ") + (machine.isMarked(item) ? "*" : " ")
        let columns = details(item)
        let name =
            TerminalText.shown(machine.folder == nil ? item.path : item.name)
            + (item.isFolder ? "/" : "")
        let room = size.columns - 2 - columns.reduce(0) { $0 + 1 + $1.count }
        let line = marks + TerminalText.fitted(name, room) + columns.map { " " + $0 }.joined()
        if isCurrent { return styled(line, "7") }
        return machine.mayShowAsPickable(item) ? line : styled(line, "2")
    }

    /// As many as there is room for.
    private func details(_ item: PickerItem) -> [String] {
        let state =
            item.percent.map { "\(Int($0))%" } ?? (item.state == "current" ? "" : item.state)
        var result = [
            size.columns >= 60 ? TerminalText.fitted(state, 11) : String(mark(item.state))
        ]
        if size.columns >= 48 {
            let size = TerminalText.size(item.size)
            let text = item.isFolder ? "" : size
            result.append(String(repeating: " ", count: max(0, 7 - text.count)) + text)
        }
        if size.columns >= 80 { result.append(TerminalText.date(item.modificationTime)) }
        return result
    }

    /// Where there is no room for the word.
    private func mark(_ state: String) -> Character {
        switch state {
        case "placeholder": "o"
        case "partial": "%"
        case "modified", "uploading": "^"
        case "conflicted": "!"
        case "error": "x"
        default: " "
        }
    }

    private func placeLines(_ machine: PickerMachine) -> [String] {
        let first = max(0, placeCursor - rowCount + 1)
        return (0..<rowCount).map { offset in
            let index = first + offset
            guard machine.places.indices.contains(index) else {
                return String(repeating: " ", count: size.columns)
            }
            let place = machine.places[index]
            let note = place.note.map { " (\($0))" } ?? ""
            let text =
                (index == placeCursor ? "> " : "  ")
                + TerminalText.shown(Array((place.title + note).utf8))
            let line = TerminalText.fitted(text, size.columns)
            return index == placeCursor ? styled(line, "7") : line
        }
    }

    private func choiceLines(_ machine: PickerMachine) -> [String] {
        let first = max(0, choiceCursor - rowCount + 1)
        let texts = TerminalText.choices(machine)
        return (first..<(first + rowCount)).map { index in
            guard texts.indices.contains(index) else {
                return String(repeating: " ", count: size.columns)
            }
            let mark = index == choiceCursor ? "> " : "  "
            let line = TerminalText.fitted(mark + texts[index], size.columns)
            return index == choiceCursor ? styled(line, "7") : line
        }
    }

    private static let helpLines = [
        "Enter open, pick   s pick this", "Tab mark           h up, l into",
        "j k g G move       / filter here",
        "f find everywhere  p places", "o sort, O reverse  . hidden",
        "n name  + folder  r rename",
        "R list anew        q Esc cancel", "c choices that go with it", "o away  % part  ^ to be sent",
    ]

    private func help() -> [String] {
        (helpTop..<(helpTop + rowCount)).map {
            let lines = TerminalScreen.helpLines
            return TerminalText.fitted($0 < lines.count ? lines[$0] : "", size.columns)
        }
    }

    private func statusLine(_ machine: PickerMachine) -> String {
        if machine.phase == .performing { return TerminalText.fitted("working…", size.columns) }
        if let message = machine.message {
            return styled(
                TerminalText.fitted(TerminalText.shown(Array(message.utf8)), size.columns), "31")
        }
        var words: [String] = []
        if let total = machine.total {
            words.append(total == 0 ? "0" : "\(machine.cursor + 1)/\(total)")
        }
        if !machine.marked.isEmpty { words.append("\(machine.marked.count) marked") }
        if machine.request.hasName { words.append("name: \(TerminalText.shown(machine.name))") }
        if let first = TerminalText.choices(machine).first {
            words.append("c \(first)" + (machine.chosen.count > 1 ? "…" : ""))
        }
        if let listing = machine.listing, listing.key != .name || listing.isDescending {
            words.append("by \(listing.key.rawValue)\(listing.isDescending ? " down" : "")")
        }
        if let filter = machine.listing?.filter, !filter.isEmpty {
            words.append("/\(TerminalText.shown(Array(filter.utf8)))")
        }
        if let reason = machine.reason { words.append(TerminalText.shown(Array(reason.utf8))) }
        return TerminalText.fitted(words.joined(separator: "  "), size.columns)
    }

    private func lastLine(_ machine: PickerMachine) -> String {
        guard let prompt else {
            if panel == .choices {
                return TerminalText.fitted("Enter the next option  c back", size.columns)
            }
            if panel == .help {
                let isAll = helpTop + rowCount >= TerminalScreen.helpLines.count
                return TerminalText.fitted(isAll ? "any key: back" : "any key: more  q back", size.columns)
            }
            let what = machine.request.picksPlace ? "s put it here" : "Enter pick"
            let isNarrow = size.columns < 50
            let rest = isNarrow ? "/ p places ? help q" : "/ filter  p places  ? help  q cancel"
            return TerminalText.fitted("\(what)  \(rest)", size.columns)
        }
        let label =
            switch prompt {
            case .filter: "/"
            case .search: "find: "
            case .name: "name: "
            case .folder: "new folder: "
            case .rename: "new name: "
            }
        let room = size.columns - label.count - 1
        let typed =
            TerminalText.width(text) > room
            ? TerminalText.fitted(TerminalText.shown(Array(text.utf8)), room, keepsEnd: true)
            : TerminalText.shown(Array(text.utf8))
        return TerminalText.fitted("\(label)\(typed)_", size.columns)
    }

    private func styled(_ text: String, _ code: String) -> String {
        hasColours ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }
}

extension PickerMachine {
    /// What cannot be picked is shown as such.
    fileprivate func mayShowAsPickable(_ item: PickerItem) -> Bool {
        item.isFolder || !request.picksPlace
    }
}
