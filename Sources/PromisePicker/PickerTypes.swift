import PromiseCore
public import PromiseKit

/// What a person is asked to pick, and what becomes of it.
public struct PickerRequest: Sendable, Equatable {
    public enum Mode: String, Sendable, CaseIterable {
        /// A document is given as it is.
        case open
        /// A copy of it, which is temporary.
        case `import`
        /// The sources go where the person says; references to them stay where they were.
        case move
        /// Copies of the sources go there; nothing stays.
        case export
        /// A new document, empty, where the person says.
        case create
        /// A name where a document will be: nothing is made.
        case save
    }

    /// A file that goes somewhere: its absolute path.
    public struct Source: Sendable, Equatable {
        public var path: [UInt8]

        public init(path: [UInt8]) { self.path = path }

        public var name: [UInt8] { path.split(separator: 0x2F).last.map { Array($0) } ?? [] }
    }

    public var mode: Mode
    /// Uniform type identifiers and MIME types; empty: all.
    public var types: [String] = []
    public var allowsMultiple = false
    /// Folders are what is picked.
    public var picksFolders = false
    /// Of what is made.
    public var suggestedName: [UInt8] = []
    public var sources: [Source] = []
    /// Who gets what is picked; nil: the owner.
    public var application: String?
    /// What the person is to say besides, in the words of whoever asks.
    public var choices: [PickerChoice] = []
    /// Where to begin.
    public var start: PickerFolder?
    /// What the person is asked, in the words of whoever asks.
    public var title: String?
    /// Whoever asks, for people.
    public var requester: String?

    public init(_ mode: Mode) { self.mode = mode }

    /// Why nothing could be of a type; nil for one that has a meaning. Patterns are for ends of names alone.
    public static func problem(withType text: String) -> String? {
        let isEnd = text.hasPrefix("*.")
        let rest = isEnd ? text.dropFirst(2) : text[...]
        let isPattern = rest.contains { "*?[".contains($0) }
        let isAll = ["*", "*.*"].contains(text)
        guard rest.isEmpty || isPattern && !isAll && (isEnd || !text.contains("/")) else { return nil }
        return "'\(escapedForDisplay(text.utf8.prefix(80)))' is no type: give a uniform type identifier as public.text, a MIME "
            + "type as image/png or image/*, or an end of names as *.txt"
    }

    /// A place is picked, not a document.
    public var picksPlace: Bool {
        switch mode {
        case .move, .export, .create, .save: true
        case .open, .import: false
        }
    }
    /// The person says what the one thing that comes there is called.
    public var hasName: Bool { mode == .create || mode == .save || picksPlace && sources.count == 1 }
}

/// Something that a person says besides: one of several options, or yes or no where there are none.
public struct PickerChoice: Sendable, Equatable {
    /// Of a choice without options.
    private static let answers = ["no", "yes"]
    /// Nobody reads more, and no screen has room for it.
    private static let countMax = 200

    public var label: String
    public var options: [String]
    /// What is chosen at first: an index of `names`.
    public var initial: Int

    public init(label: String, options: [String], initial: Int) {
        self.label = label
        self.options = options
        self.initial = initial
    }

    public var isFlag: Bool { options.isEmpty }
    public var names: [String] { isFlag ? PickerChoice.answers : options }

    /// `LABEL TAB OPTION TAB OPTION…`, each option after a space, or after `*` where it is the one at
    /// first; one without a name: yes. Nil for what is no such text.
    public init?(_ text: String) {
        let fields = text.split(separator: "\t", omittingEmptySubsequences: false)
        guard let label = fields.first, !label.isEmpty, fields.count <= PickerChoice.countMax,
            fields.dropFirst().allSatisfy({ $0.hasPrefix("*") || $0.hasPrefix(" ") })
        else { return nil }
        self.label = String(label.prefix(PickerChoice.countMax))
        let first = fields.dropFirst().firstIndex { $0.hasPrefix("*") }
        if fields.count == 2, fields[1] == "*" {
            (options, initial) = ([], 1)
        } else {
            options = fields.dropFirst().map { String($0.dropFirst().prefix(PickerChoice.countMax)) }
            initial = first.map { $0 - 1 } ?? 0
        }
    }
}

/// A folder of a domain: bytes from its root.
public struct PickerFolder: Sendable, Hashable {
    public var domain: String
    public var path: [UInt8]

    public init(domain: String, path: [UInt8] = []) {
        self.domain = domain
        self.path = path
    }

    public var name: [UInt8] { path.split(separator: 0x2F).last.map { Array($0) } ?? [] }

    /// Nil for the root.
    public var parent: PickerFolder? {
        if path.isEmpty { return nil }
        let end = path.lastIndex(of: 0x2F) ?? 0
        return PickerFolder(domain: domain, path: Array(path[..<end]))
    }

    public func child(_ name: [UInt8]) -> [UInt8] { path.isEmpty ? name : path + [0x2F] + name }
}

/// One line of a list.
public struct PickerItem: Sendable, Hashable {
    public var domain: String
    /// Bytes from the root of the domain.
    public var path: [UInt8]
    /// As `FoundItemDocument` has it, like what follows.
    public var kind: String
    public var size: UInt64
    public var modificationTime: String
    public var state: String
    public var type: String?
    public var tags: [String]
    /// 0 to 100 while the content is on its way.
    public var percent: Double?

    public init(
        domain: String, path: [UInt8], kind: String, size: UInt64 = 0,
        modificationTime: String = "",
        state: String = "current", type: String? = nil, tags: [String] = [], percent: Double? = nil
    ) {
        self.domain = domain
        self.path = path
        self.kind = kind
        self.size = size
        self.modificationTime = modificationTime
        self.state = state
        self.type = type
        self.tags = tags
        self.percent = percent
    }

    public var name: [UInt8] { path.split(separator: 0x2F).last.map { Array($0) } ?? [] }
    public var isFolder: Bool { kind == "folder" }
    public var asFolder: PickerFolder { PickerFolder(domain: domain, path: path) }
    public var folder: PickerFolder { asFolder.parent ?? PickerFolder(domain: domain) }
}

/// Where a person can begin.
public struct PickerPlace: Sendable, Hashable {
    public enum Kind: String, Sendable { case recent, domain, container }

    public var kind: Kind
    public var title: String
    /// Why it is of no use now, or whose it is.
    public var note: String?
    /// Nil: of no folder.
    public var folder: PickerFolder?

    public init(_ kind: Kind, title: String, note: String? = nil, folder: PickerFolder? = nil) {
        self.kind = kind
        self.title = title
        self.note = note
        self.folder = folder
    }
}

/// What is listed, and in which order.
public struct PickerListing: Sendable, Hashable {
    public enum View: Sendable, Hashable {
        case recent
        case folder(PickerFolder)
        /// Names of all domains with a text in them.
        case everywhere(String)
    }

    public var view: View
    public var key = FolderListing.Key.name
    public var isDescending = false
    /// Of a folder: only names with this in them.
    public var filter = ""
    public var showsHidden = false
    public var types: [String] = []
    public var foldersOnly = false

    public init(_ view: View) { self.view = view }
}

/// Something that happens when a person has picked, and not before.
public enum PickerConsequence: Sendable, Equatable {
    case open(PickerItem)
    case copyOut(PickerItem)
    case move(PickerRequest.Source, to: PickerFolder, as: [UInt8])
    case export(PickerRequest.Source, to: PickerFolder, as: [UInt8])
    case create(PickerFolder, name: [UInt8])
    /// `isConfirmed`: the person has said that what is there is to be replaced.
    case save(PickerFolder, name: [UInt8], isConfirmed: Bool)
}

/// What whoever asked is told, and all that is told.
public struct PickedDocument: Sendable, Equatable {
    /// Absolute: what to open.
    public var path: [UInt8]
    /// Of the application, to find it again.
    public var bookmark: String?
    /// Absolute: where a reference to it is now.
    public var reference: [UInt8]?
    /// The application's right to it.
    public var grant: Int64?

    public init(
        path: [UInt8], bookmark: String? = nil, reference: [UInt8]? = nil, grant: Int64? = nil
    ) {
        self.path = path
        self.bookmark = bookmark
        self.reference = reference
        self.grant = grant
    }
}

public enum PickerOutcome: Sendable, Equatable {
    case cancelled
    case picked([PickedDocument])
}
