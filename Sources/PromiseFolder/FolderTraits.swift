import Glibc
import PromiseCore
import PromiseProvider

/// What a file system keeps of what is put into a folder of it. Others than Linux' own keep less.
struct FolderTraits: Codable, Equatable, Sendable {
    /// What it refuses or changes in names; nil where names are any bytes.
    var escapes: NameEscapes?
    var kept = Kept.all

    struct Kept: OptionSet, Codable, Sendable {
        let rawValue: UInt8

        static let modes = Kept(rawValue: 1 << 0)
        /// As they are set: rounded, a time would come back as somebody's change.
        static let times = Kept(rawValue: 1 << 1)
        static let links = Kept(rawValue: 1 << 2)
        /// Owners and times of links; else what is set of a link is set of what it leads to
        /// (sshfs).
        static let linkMetadata = Kept(rawValue: 1 << 3)

        static let all: Kept = [.modes, .times, .links, .linkMetadata]
    }

    /// A name leads to an item whose name differs from it in case only.
    var ignoresCase: Bool { escapes?.contains(.cases) == true }

    /// What is safe on either of two.
    func joined(_ other: FolderTraits) -> FolderTraits {
        var result = self
        if let more = other.escapes { result.escapes = (escapes ?? []).union(more) }
        return result
    }
}

/// `.promisefs/store.json` in a folder whose file system has no lasting names for files: an
/// identity of its own, by which it is told from another memory stick at its place and from the
/// empty folder that a stick leaves behind, and what has been found out about the file system. All
/// who share the folder go by it.
struct FolderRecord: Codable, Equatable, Sendable {
    static let name = Array("store.json".utf8)
    /// Of a folder that has no record and cannot get one.
    static let noIdentity = "places"
    /// What reading a record that is none ends with.
    static let unreadable = EBADMSG

    var identity: String
    /// By the type of the file system, in hexadecimal: other machines may reach the folder in other
    /// ways.
    var traits: [String: FolderTraits]

    func isKnown(_ type: Int64) -> Bool { traits[FolderRecord.key(type)] != nil }

    /// Of the file system of that type, with the escapes of all of them: a name has to be the same
    /// for everybody.
    func traits(of type: Int64) -> FolderTraits {
        traits.values.reduce(traits[FolderRecord.key(type)] ?? FolderTraits()) { $0.joined($1) }
    }

    static func key(_ type: Int64) -> String { String(UInt64(bitPattern: type), radix: 16) }
}
