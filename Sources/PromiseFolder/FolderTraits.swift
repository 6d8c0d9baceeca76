import FoundationEssentials
import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem
import Synchronization

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
        /// Owners and times of links; else what is set of a link is set of what it leads to (sshfs).
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

/// `.promisefs/store.json` in a folder whose file system has no lasting names for files: an identity of its own, by which it is
/// told from another memory stick at its place and from the empty folder that a stick leaves behind, and what has been found out
/// about the file system. All who share the folder go by it.
struct FolderRecord: Codable, Equatable, Sendable {
    static let name = Array("store.json".utf8)
    /// Of a folder that has no record and cannot get one.
    static let noIdentity = "places"
    /// What reading a record that is none ends with.
    static let unreadable = EBADMSG

    var identity: String
    /// By the type of the file system, in hexadecimal: other machines may reach the folder in other ways.
    var traits: [String: FolderTraits]

    func isKnown(_ type: Int64) -> Bool { traits[FolderRecord.key(type)] != nil }

    /// Of the file system of that type, with the escapes of all of them: a name has to be the same for everybody.
    func traits(of type: Int64) -> FolderTraits {
        traits.values.reduce(traits[FolderRecord.key(type)] ?? FolderTraits()) { $0.joined($1) }
    }

    static func key(_ type: Int64) -> String { String(UInt64(bitPattern: type), radix: 16) }
}

extension FolderProvider {
    /// The record of a folder that is at hand; nil where there is none and none can be made, as on a medium that is only read.
    func knownOrNewRecord(_ root: OpenFolder, type: Int64) throws(SystemError) -> FolderRecord? {
        let known = try record(in: root)
        if let known, known.isKnown(type) { return known }
        do throws(SystemError) {
            let store = try openOrMake(ReservedName.folder, in: root)
            let probe = FolderProbe(folder: try openOrMake(ReservedName.uploads, in: store), prefix: temporaryName(.store))
            var record = known ?? FolderRecord(identity: newIdentity(), traits: [:])
            record.traits[FolderRecord.key(type)] = try probe.run()
            guard try write(record, in: store, isFirst: known == nil) else { return try self.record(in: root) }
            return record
        } catch {
            guard [EROFS, EACCES, EPERM].contains(error.errno) else { throw error }
            return known
        }
    }

    func record(in root: OpenFolder) throws(SystemError) -> FolderRecord? {
        let file: SharedDescriptor
        do throws(SystemError) {
            let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK
            let store = try root.open(ReservedName.folder)
            file = SharedDescriptor(
                try Descriptor.open(FolderRecord.name, in: store.number, flags: flags, label: "folder.record.open"))
        } catch {
            guard error.errno == ENOENT else { throw error }
            return nil
        }
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        let outcome: Result<Int, SystemError> = bytes.withUnsafeMutableBytes { buffer in
            do throws(SystemError) {
                return .success(try readFully(file.number, into: buffer, at: 0, label: "folder.record.read"))
            } catch {
                return .failure(error)
            }
        }
        let count = try outcome.get()
        guard let record = try? JSONDecoder().decode(FolderRecord.self, from: Data(bytes[..<count])) else {
            // Made anew it would be another folder's.
            throw SystemError(errno: FolderRecord.unreadable, label: "folder.record.read")
        }
        return record
    }

    /// Whole or not at all: written aside and renamed. False when it was to be the first and another daemon's is.
    private func write(_ record: FolderRecord, in store: OpenFolder, isFirst: Bool) throws(SystemError) -> Bool {
        guard let data = try? JSONEncoder().encode(record) else { preconditionFailure("a record of strings and flags is JSON") }
        let draft = temporaryName(.beside)
        do throws(SystemError) {
            let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW
            let file = try Descriptor.open(draft, in: store.number, flags: flags, mode: 0o644, label: "folder.record.make")
            try writeFully(file.number, Array(data), at: 0, label: "folder.record.write")
            if isDurable { try synchronize(file.number, dataOnly: false, label: "folder.record.sync") }
            if isFirst {
                try moveWithoutReplacing(draft, in: store.number, to: FolderRecord.name, in: store.number)
            } else {
                try rename(draft, in: store.number, to: FolderRecord.name, in: store.number, label: "folder.record.rename")
            }
            return true
        } catch {
            remove(draft, in: store)
            if isFirst && error.errno == EEXIST { return false }
            throw error
        }
    }

    private func newIdentity() -> String {
        String(UInt64.random(in: .min ... .max), radix: 16) + String(UInt64.random(in: .min ... .max), radix: 16)
    }
}
