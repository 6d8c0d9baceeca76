import PromiseKit

/// The picker by lines: what is shown is said once, from top to bottom, and what is typed is a
/// word. For screen readers, and for whatever has lines and no screen.
public struct PlainScreen: Sendable {
    private static let pageCount = 20

    private var first = 0
    private var listing: PickerListing?
    private var said: Said?
    private var saidMessage: String?

    /// What has been said of the list.
    private struct Said: Sendable, Equatable {
        var listing: PickerListing?
        var total: Int?
        var first: Int
        var items: [PickerItem]
        var marked: Int
    }

    public init() {}

    public static let help = """
        A number opens that folder or picks that document. Other words:
        .. (up)  n, b (next, previous page)  /TEXT (filter here, / alone: all)  ?TEXT (find everywhere)
        m NUMBER (mark)  ok (pick what is marked, or this place)  sort KEY  hidden  places  at NUMBER (go to a place)
        name TEXT  folder TEXT (make one)  rename NUMBER TEXT  choices  choose CHOICE NUMBER  help  q (cancel)
        """

    static let cancel = "q"
    private static let keys =
        "sort by \(FolderListing.Key.allCases.map(\.rawValue).joined(separator: ", "))\n"
    public static let noItem = "no item has that number now; an empty line says the list again\n"

    /// What is to be said now; empty while a list is on its way, or when nothing is new.
    public mutating func say(_ machine: PickerMachine) -> (text: String, sight: PickerEvent) {
        var text = ""
        if let message = machine.message, message != saidMessage {
            text += TerminalText.shown(Array(message.utf8)) + "\n"
        }
        saidMessage = machine.message
        // Another list begins at its beginning.
        if machine.listing != listing { first = 0 }
        listing = machine.listing
        guard machine.phase == .browsing, let total = machine.total else { return (text, sight) }
        if first >= total { first = 0 }
        let range = first..<min(total, first + PlainScreen.pageCount)
        let items = range.compactMap { machine.item($0) }
        guard items.count == range.count else { return (text, sight) }
        let now = Said(
            listing: machine.listing, total: total, first: first, items: items,
            marked: machine.marked.count)
        if now == said { return (text, sight) }
        said = now
        text += head(machine, total) + zip(range, items).map { line($0, $1, machine) }.joined()
        return (text, sight)
    }

    private var sight: PickerEvent { .see(first: first, count: PlainScreen.pageCount) }

    private func head(_ machine: PickerMachine, _ total: Int) -> String {
        let count = total == 0 ? "nothing here" : total == 1 ? "1 item" : "\(total) items"
        let part = total > PlainScreen.pageCount ? ", from \(first + 1)" : ""
        let name = machine.request.hasName ? "; name: \(TerminalText.shown(machine.name))" : ""
        let reason = machine.reason.map { "; \(TerminalText.shown(Array($0.utf8)))" } ?? ""
        let choices = TerminalText.choices(machine).map { "; \($0)" }.joined()
        let title = TerminalText.title(machine.request)
        return
            "\(title): \(TerminalText.place(machine.listing)): \(count)\(part)\(name)\(choices)\(reason)\n"
    }

    private func line(_ index: Int, _ item: PickerItem, _ machine: PickerMachine) -> String {
        let name = TerminalText.shown(machine.folder == nil ? item.path : item.name)
        var words = [item.isFolder ? "folder" : TerminalText.size(item.size)]
        if item.state != "current" { words.append(item.state) }
        if machine.isMarked(item) { words.append("marked") }
        return "\(index + 1) \(name), \(words.joined(separator: ", "))\n"
    }

    /// What a typed line means, and what is answered to it at once.
    public mutating func take(_ line: String, _ machine: PickerMachine) -> (
        events: [PickerEvent], text: String
    ) {
        let words = line.split(separator: " ", maxSplits: 1)
        let rest = words.count > 1 ? String(words[1]) : ""
        if Int(line) != nil {
            guard let index = index(line[...], machine) else { return ([], PlainScreen.noItem) }
            return ([.go(to: index), .enter], "")
        }
        if line.hasPrefix("/") { return ([.filter(String(line.dropFirst()))], "") }
        if line.hasPrefix("?") { return ([.search(String(line.dropFirst()))], "") }
        switch words.first ?? "" {
        case "":
            said = nil
            return ([sight], "")
        case "..": return ([.up], "")
        case "n": return (turn(by: PlainScreen.pageCount, machine), "")
        case "b": return (turn(by: -PlainScreen.pageCount, machine), "")
        case "m":
            guard Int(rest) != nil else { break }
            guard let index = index(rest[...], machine) else { return ([], PlainScreen.noItem) }
            return ([.go(to: index), .mark], "")
        case "ok": return ([.confirm], "")
        case PlainScreen.cancel[...]: return ([.cancel], "")
        case "sort":
            guard let key = FolderListing.Key(rawValue: rest) else { return ([], PlainScreen.keys) }
            return ([.sort(key)], "")
        case "hidden": return ([.toggleHidden], "")
        case "name":
            guard machine.request.hasName else { break }
            let name = Array(rest.utf8)
            return ([.name(name), .changed], "name: \(TerminalText.shown(name))\n")
        case "folder": return ([.makeFolder(Array(rest.utf8))], "")
        case "rename":
            let parts = rest.split(separator: " ", maxSplits: 1)
            guard parts.count == 2, Int(parts[0]) != nil else { break }
            guard let index = index(parts[0], machine) else { return ([], PlainScreen.noItem) }
            return ([.go(to: index), .rename(Array(parts[1].utf8))], "")
        case "choices": return ([], choices(machine))
        case "choose":
            let parts = rest.split(separator: " ").compactMap { Int($0) }
            guard parts.count == 2, machine.request.choices.indices.contains(parts[0] - 1),
                machine.request.choices[parts[0] - 1].names.indices.contains(parts[1] - 1)
            else { return ([], choices(machine)) }
            let choice = machine.request.choices[parts[0] - 1]
            let text = "\(choice.label): \(choice.names[parts[1] - 1])"
            return (
                [.choose(choice: parts[0] - 1, option: parts[1] - 1)],
                TerminalText.shown(Array(text.utf8)) + "\n"
            )
        case "places": return ([], places(machine))
        case "at":
            guard let number = Int(rest), machine.places.indices.contains(number - 1) else { break }
            return ([machine.places[number - 1].folder.map { .visit($0) } ?? .showRecent], "")
        default: break
        }
        return ([], PlainScreen.help + "\n")
    }

    /// Of the item that a number was said of; nil when there is none, or another one is there by now.
    private func index(_ word: Substring, _ machine: PickerMachine) -> Int? {
        guard let number = Int(word), let total = machine.total, number >= 1, number <= total else { return nil }
        let index = number - 1
        if let said, said.listing == machine.listing, index >= said.first, index - said.first < said.items.count,
            let now = machine.item(index)
        {
            let then = said.items[index - said.first]
            guard then.domain == now.domain, then.path == now.path else { return nil }
        }
        return index
    }

    private mutating func turn(by count: Int, _ machine: PickerMachine) -> [PickerEvent] {
        let last = max(0, (machine.total ?? 1) - 1) / PlainScreen.pageCount * PlainScreen.pageCount
        first = max(0, min(last, first + count))
        return [.see(first: first, count: PlainScreen.pageCount), .go(to: first)]
    }

    private func choices(_ machine: PickerMachine) -> String {
        if machine.request.choices.isEmpty { return "there is nothing to choose besides\n" }
        return zip(TerminalText.choices(machine), machine.request.choices).enumerated().map {
            index, choice in
            let names = choice.1.names.enumerated().map {
                "\($0.offset + 1) \(TerminalText.shown(Array($0.element.utf8)))"
            }
            return "\(index + 1) \(choice.0) (\(names.joined(separator: ", ")))\n"
        }.joined()
    }

    private func places(_ machine: PickerMachine) -> String {
        machine.places.enumerated().map { index, place in
            let note = place.note.map { ", \($0)" } ?? ""
            return "\(index + 1) \(TerminalText.shown(Array((place.title + note).utf8)))\n"
        }.joined()
    }
}
