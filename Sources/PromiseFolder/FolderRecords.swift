import FoundationEssentials
import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem

/// The records of folders whose file system has no lasting names for files: read, and made when a
/// folder is first used.
struct FolderRecords: Sendable {
    let isDurable: Bool
    let names: TemporaryNames

    /// The record of a folder that is at hand; nil where there is none and none can be made, as on
    /// a medium that is only read.
    func knownOrNew(_ root: OpenFolder, type: Int64) throws(SystemError) -> FolderRecord? {
        let known = try record(in: root)
        if let known, known.isKnown(type) { return known }
        do throws(SystemError) {
            let store = try root.openOrMake(ReservedName.folder)
            let probe = FolderProbe(
                folder: try store.openOrMake(ReservedName.uploads), prefix: names.name(.store))
            var record = known ?? FolderRecord(identity: newIdentity(), traits: [:])
            record.traits[FolderRecord.key(type)] = try probe.run()
            guard try write(record, in: store, isFirst: known == nil) else {
                return try self.record(in: root)
            }
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
                try Descriptor.open(
                    FolderRecord.name, in: store.number, flags: flags, label: "folder.record.open"))
        } catch {
            guard error.errno == ENOENT else { throw error }
            return nil
        }
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        let outcome: Result<Int, SystemError> = bytes.withUnsafeMutableBytes { buffer in
            do throws(SystemError) {
                return .success(
                    try readFully(file.number, into: buffer, at: 0, label: "folder.record.read"))
            } catch {
                return .failure(error)
            }
        }
        let count = try outcome.get()
        guard let record = try? JSONDecoder().decode(FolderRecord.self, from: Data(bytes[..<count]))
        else {
            // Made anew it would be another folder's.
            throw SystemError(errno: FolderRecord.unreadable, label: "folder.record.read")
        }
        return record
    }

    /// Whole or not at all: written aside and renamed. False when it was to be the first and
    /// another daemon's is.
    private func write(_ record: FolderRecord, in store: OpenFolder, isFirst: Bool)
        throws(SystemError) -> Bool
    {
        guard let data = try? JSONEncoder().encode(record) else {
            preconditionFailure("a record of strings and flags is JSON")
        }
        let draft = names.name(.beside)
        do throws(SystemError) {
            let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW
            let file = try Descriptor.open(
                draft, in: store.number, flags: flags, mode: 0o644, label: "folder.record.make")
            try writeFully(file.number, Array(data), at: 0, label: "folder.record.write")
            if isDurable {
                try synchronize(file.number, dataOnly: false, label: "folder.record.sync")
            }
            if isFirst {
                try moveWithoutReplacing(
                    draft, in: store.number, to: FolderRecord.name, in: store.number)
            } else {
                try rename(
                    draft, in: store.number, to: FolderRecord.name, in: store.number,
                    label: "folder.record.rename")
            }
            return true
        } catch {
            names.remove(draft, in: store)
            if isFirst && error.errno == EEXIST { return false }
            throw error
        }
    }

    private func newIdentity() -> String {
        String(UInt64.random(in: .min ... .max), radix: 16)
            + String(UInt64.random(in: .min ... .max), radix: 16)
    }
}
