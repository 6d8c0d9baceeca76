import PromiseCore
import PromiseProvider
import PromiseSystem

// What makes an item of the folder the same item. A file is known by the file system's own stable
// name for it (its handle), which renames do not change. Replacing content makes a new file, so the
// new one carries the old identifier in an attribute, the mark, together with its own handle: a
// copy made by `cp -a` takes the mark along but has another handle, and is not mistaken for the
// original.
//
// Where a file system has no lasting names for files (`FolderRoot.knowsByPlace`), an item is what
// is at a path: its identifier is the path, its version is of size and time only, and the handle
// serves to tell files apart for as long as one call takes.

/// Who a file, folder or link is.
struct FolderIdentity: Equatable, Sendable {
    /// This very file: its handle in hexadecimal, with the file system's identity where that is not
    /// the root's.
    var own: String
    /// What a valid mark says, else `own`.
    var base: String
    /// The file has more than one name. Each name is an item of its own.
    var hasSeveralNames: Bool
    /// `own` stays with the file.
    var isLasting: Bool

    /// `parent` is the folder as `FolderLocator.text(of:at:)` gives it.
    func identifier(parent: String, name: FileName) -> ItemIdentifier {
        guard isLasting else { return ItemIdentifier("\(parent)/\(name.display)") }
        guard hasSeveralNames else { return ItemIdentifier(base) }
        var hash = FowlerNollVoHash()
        hash.add(parent.utf8)
        hash.add([0])
        hash.add(name.bytes)
        return ItemIdentifier("\(base).\(hash.text)")
    }
}

enum IdentityMark {
    static let attribute: StaticString = "user.promisefs.identifier"

    static func value(identifier: ItemIdentifier, own: String) -> [UInt8] {
        Array("\(identifier.rawValue) \(own)".utf8)
    }

    /// The identifier in a mark, or nil when the mark was written for another file, or names what
    /// no file of its file system is called.
    static func identifier(in value: [UInt8], own: String) -> String? {
        guard let space = value.lastIndex(of: 0x20), space > 0,
            value[(space + 1)...].elementsEqual(own.utf8),
            space <= byteCountMax, value[..<space].allSatisfy(isOfIdentifiers),
            let identifier = String(validating: value[..<space], as: UTF8.self),
            fileSystem(in: identifier) == fileSystem(in: own)
        else { return nil }
        return identifier
    }

    private static let byteCountMax = 512

    /// Digits, and what stands before a file system, a place, a name and a time.
    private static func isOfIdentifiers(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x61...0x66, UInt8(ascii: "@"), UInt8(ascii: "~"), UInt8(ascii: "."),
            UInt8(ascii: "-"):
            true
        default: false
        }
    }

    /// What tells the file system; empty for the root's.
    private static func fileSystem(in identifier: String) -> Substring {
        identifier.prefix { $0 != "." }.drop { $0 != "@" && $0 != "~" }
    }
}

/// FNV-1a, 64 bits (RFC 9923): short names for long things; not against an adversary.
struct FowlerNollVoHash {
    private var state: UInt64 = 0xCBF2_9CE4_8422_2325

    mutating func add(_ bytes: some Sequence<UInt8>) {
        for byte in bytes { state = (state ^ UInt64(byte)) &* 0x100_0000_01B3 }
    }

    var text: String {
        let text = String(state, radix: 16)
        return String(repeating: "0", count: 16 - text.utf8.count) + text
    }
}

/// Lower-case hexadecimal digits, two a byte.
func hexadecimalText(_ bytes: [UInt8]) -> String {
    func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
    return String(unsafeUninitializedCapacity: bytes.count * 2) { buffer in
        for (index, byte) in bytes.enumerated() {
            buffer[2 * index] = digit(byte >> 4)
            buffer[2 * index + 1] = digit(byte & 15)
        }
        return bytes.count * 2
    }
}

func bytes(hexadecimal text: some StringProtocol) -> [UInt8]? {
    let digits = Array(text.utf8)
    guard digits.count % 2 == 0 else { return nil }
    var result: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
        guard let high = Character(Unicode.Scalar(digits[index])).hexDigitValue,
            let low = Character(Unicode.Scalar(digits[index + 1])).hexDigitValue
        else { return nil }
        result.append(UInt8(high << 4 | low))
    }
    return result
}

/// One entry of a folder as it was found.
struct FolderEntry: Sendable {
    /// As the file system has it.
    var name: [UInt8]
    var shownName: FileName
    var status: FileStatus
    var identity: FolderIdentity
    var identifier: ItemIdentifier
    /// Of a link.
    var target: [UInt8]?
    /// Else the file system shows all files with one mode.
    var hasOwnMode: Bool
    /// The folder of a file system that is not mounted now.
    var isAway = false

    static let folderVersion = ContentVersion("folder")

    var version: ContentVersion {
        FolderEntry.version(status, identity.isLasting ? identity.own : nil, target: target)
    }

    /// Changes with the content, not with mode, owner or name. A lasting handle tells apart two
    /// files of one size and time.
    static func version(_ status: FileStatus, _ handle: String?, target: [UInt8]?) -> ContentVersion
    {
        let own = handle.map { "-" + $0 } ?? ""
        switch status.kind {
        case .folder: return folderVersion
        case .link:
            var hash = FowlerNollVoHash()
            hash.add(target ?? [])
            return ContentVersion("\(hash.text)-\(status.modificationTime.rawValue)\(own)")
        default: return ContentVersion("\(status.size)-\(status.modificationTime.rawValue)\(own)")
        }
    }

    /// Also one whose mark is believed here, and not there.
    func isSame(as other: FolderEntry) -> Bool {
        other.identity.isLasting
            ? identity.own == other.identity.own : identity.base == other.identity.base
    }

    func item(parent: ItemIdentifier?) -> Item {
        var metadata = status.metadata
        // That everything on a memory stick is a program, and anybody's to write to, says nothing
        // of the item.
        if !hasOwnMode { metadata.mode &= status.kind == .folder ? 0o755 : 0o644 }
        return Item(
            identifier: identifier, parent: parent, name: shownName, kind: status.kind,
            size: status.kind == .folder ? 0 : target.map { UInt64($0.count) } ?? status.size,
            metadata: metadata, version: version, target: target)
    }
}

extension FileStatus {
    var metadata: Metadata {
        Metadata(mode: permissions, owner: owner, group: group, modificationTime: modificationTime)
    }
}
