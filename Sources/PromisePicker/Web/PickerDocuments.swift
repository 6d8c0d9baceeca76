import PromiseCore
import PromiseKit
import PromiseWire

// What the picker's page and its server say to each other: a matter of this module alone.

struct PickerFolderDocument: Codable, Sendable {
    var domain: String
    /// Percent-encoded bytes.
    var path: String

    init(_ folder: PickerFolder) {
        domain = folder.domain
        path = PercentCoding.encode(folder.path)
    }

    var folder: PickerFolder? {
        PercentCoding.decode(path[...]).map { PickerFolder(domain: domain, path: $0) }
    }
}

struct PickerItemDocument: Codable, Sendable {
    var domain: String
    var pathBytes: String
    /// As people see it.
    var name: String
    var isFolder: Bool
    var size: UInt64?
    var date: String?
    var state: String?
    var percent: Double?

    init(_ item: PickerItem, showsPath: Bool) {
        domain = item.domain
        pathBytes = PercentCoding.encode(item.path)
        name = escapedForTerminal(escapedForDisplay(showsPath ? item.path : item.name))
        isFolder = item.isFolder
        size = item.size
        date = item.modificationTime
        state = item.state
        percent = item.percent
    }

    var item: PickerItem? {
        PercentCoding.decode(pathBytes[...]).map {
            PickerItem(domain: domain, path: $0, kind: isFolder ? "folder" : "file")
        }
    }
}

struct PickerItemsDocument: Codable, Sendable {
    var generation: Int
    var total: Int
    var reason: String?
    var items: [PickerItemDocument]
}

struct PickerStateDocument: Encodable, Sendable {
    struct Place: Encodable, Sendable {
        var title: String
        var note: String?
        var folder: PickerFolderDocument?
    }

    struct Choice: Encodable, Sendable {
        var label: String
        var names: [String]
        var isFlag: Bool
        var chosen: Int
    }

    var version: Int
    var generation: Int
    var mode: String
    var phase: String
    var isPicked: Bool
    var places: [Place]
    var hasPlaces: Bool
    /// For people.
    var place: String
    var folder: PickerFolderDocument?
    var key: String
    var isDescending: Bool
    var filter: String
    var showsHidden: Bool
    var picksPlace: Bool
    var picksFolders: Bool
    var hasName: Bool
    var name: String
    var message: String?
    /// `DOMAIN/PATH` of each.
    var marked: [String]
    var choices: [Choice]

    private enum CodingKeys: String, CodingKey {
        case version, generation, mode, phase, isPicked, places, hasPlaces, folder, key,
            isDescending, filter, showsHidden
        case picksPlace, picksFolders, hasName, name, message, marked, choices
        case place = "where"
    }

    init(_ machine: PickerMachine, version: Int, outcome: PickerOutcome?) {
        self.version = version
        generation = machine.generation
        mode = machine.request.mode.rawValue
        phase =
            outcome == nil ? machine.phase == .performing ? "performing" : "browsing" : "finished"
        isPicked = if case .picked? = outcome { true } else { false }
        places = machine.places.map { place in
            Place(
                title: escapedForTerminal(place.title),
                note: place.note.map { escapedForTerminal($0) },
                folder: place.folder.map { PickerFolderDocument($0) })
        }
        hasPlaces = machine.listing != nil || machine.message != nil || outcome != nil
        place = TerminalText.place(machine.listing)
        folder = machine.folder.map { PickerFolderDocument($0) }
        key = machine.listing?.key.rawValue ?? "name"
        isDescending = machine.listing?.isDescending ?? false
        filter = machine.listing?.filter ?? ""
        showsHidden = machine.listing?.showsHidden ?? false
        picksPlace = machine.request.picksPlace
        picksFolders = machine.request.picksFolders
        hasName = machine.request.hasName
        name = String(decoding: machine.name, as: UTF8.self)
        message = machine.message.map { escapedForTerminal($0) }
        choices = zip(machine.request.choices, machine.chosen).map { choice, chosen in
            Choice(
                label: escapedForTerminal(choice.label),
                names: choice.names.map { escapedForTerminal($0) }, isFlag: choice.isFlag,
                chosen: chosen)
        }
        marked = machine.marked.map { $0.domain + "/" + PercentCoding.encode($0.path) }
    }
}

struct PickerEventDocument: Decodable, Sendable {
    var kind: String
    var text: String?
    var folder: PickerFolderDocument?
    var item: PickerItemDocument?
    var choice: Int?
    var option: Int?

    /// Nil for what is no event of a page.
    var event: PickerEvent? {
        let bytes = Array((text ?? "").utf8)
        switch kind {
        case "up": return .up
        case "recent": return .showRecent
        case "visit": return folder?.folder.map { .visit($0) }
        case "enter": return item?.item.map { .enterItem($0) }
        case "mark": return item?.item.map { .markItem($0) }
        case "confirm": return item.map { $0.item.map { .confirmItem($0) } } ?? .confirm
        case "rename": return item?.item.map { .renameItem($0, to: bytes) }
        case "filter": return .filter(text ?? "")
        case "search": return .search(text ?? "")
        case "sort": return FolderListing.Key(rawValue: text ?? "").map { .sort($0) }
        case "reverse": return .reverse
        case "hidden": return .toggleHidden
        case "name": return .name(bytes)
        case "folder": return .makeFolder(bytes)
        case "choose":
            guard let choice, let option else { return nil }
            return .choose(choice: choice, option: option)
        case "changed": return .changed
        case "cancel": return .cancel
        default: return nil
        }
    }
}
