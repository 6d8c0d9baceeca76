import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem

/// A file or link under a hidden name, ready to take its place.
struct TemporaryEntry: Sendable {
    var folder: OpenFolder
    var name: [UInt8]
    /// As it was when everything was set; a rename changes none of it.
    var entry: FolderEntry
}

/// New content: it is complete and on the disk under a hidden name before it takes a visible one.
struct TemporaryFiles: Sendable {
    let hidden: HiddenFolder
    let entries: FolderEntries
    let metadata: FolderMetadata
    private var root: FolderRoot { hidden.root }
    private var names: FolderNames { entries.names }

    /// Writes a file under a hidden name. It has its content, attributes and mark, and is on the
    /// disk, when this returns. `old` is what it is to replace, whose identifier goes on; nil for a
    /// new item. `wanted`: asked when the content is there, which may take long.
    func write(
        _ contents: any ContentSource,
        metadata wanted: @autoclosure () throws(ProviderError) -> Metadata, keepsTime: Bool,
        replacing old: FolderEntry?, for target: OpenFolder,
        place: TemporaryPlace, flag: CancellationFlag
    ) throws(ProviderError) -> TemporaryEntry {
        let folder = place == .store ? try hidden.openUploads() : target
        let name = hidden.names.name(place)
        let file = try mapped("a temporary file cannot be made") { () throws(SystemError) in
            try Descriptor.open(
                name, in: folder.number, flags: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600,
                label: "folder.upload.open")
        }
        do throws(ProviderError) {
            try copy(contents, to: file.number, flag: flag)
            let wanted = try wanted()
            return try mapped("the upload cannot be finished") { () throws(SystemError) in
                try metadata.setOfUpload(wanted, of: file.number, keepsTime: keepsTime)
                var status = try FileStatus.of(
                    descriptor: file.number, label: "folder.upload.status")
                if let old, !old.identity.isLasting,
                    old.version == FolderEntry.version(status, nil, target: nil)
                {
                    try makeLater(&status, of: file.number)
                }
                let own = try root.ownIdentity([], in: file.number, status: status)
                var base = own
                if let old, try mark(file.number, identifier: old.identifier, own: own) {
                    base = old.identifier.rawValue
                }
                if root.isDurable {
                    try synchronize(file.number, dataOnly: false, label: "folder.upload.sync")
                }
                let entry = entries.described(
                    name, FileName(trusted: name), status, own: own, base: base)
                return TemporaryEntry(folder: folder, name: name, entry: entry)
            }
        } catch {
            hidden.names.remove(name, in: folder)
            throw error
        }
    }

    /// Where size and time are all that tells two contents apart, they must differ. FAT's time has
    /// steps of two seconds.
    private func makeLater(_ status: inout FileStatus, of file: CInt) throws(SystemError) {
        let time = status.modificationTime.advanced(by: .seconds(2))
        try setTimes(file, access: time, modification: time, label: "folder.upload.later")
        status = try FileStatus.of(descriptor: file, label: "folder.upload.status")
    }

    /// Makes a link under a hidden name. Links have no attributes of their own, so a replaced one
    /// gets a new identifier.
    func link(
        _ target: [UInt8], metadata wanted: Metadata?, for folder: OpenFolder, place: TemporaryPlace
    ) throws(ProviderError) -> TemporaryEntry {
        let folder = place == .store ? try hidden.openUploads() : folder
        let name = hidden.names.name(place)
        guard !target.isEmpty, !target.contains(0) else {
            throw ProviderError(.refused, "a link leads somewhere")
        }
        guard root.kept.contains(.links) else {
            throw ProviderError(
                .refused, "the link cannot be made: the folder's file system has no links")
        }
        do throws(ProviderError) {
            return try mapped("the link cannot be made") { () throws(SystemError) in
                _ = try withCPath(names.stored(target: target)) { target throws(SystemError) in
                    try withCPath(name) { name throws(SystemError) in
                        try call("folder.link.make") { symlinkat(target, folder.number, name) }
                    }
                }
                if let wanted, root.kept.contains(.linkMetadata) {
                    try metadata.setOwner(wanted, of: name, in: folder.number)
                    let time = wanted.modificationTime
                    try setTimes(
                        of: name, in: folder.number, access: metadata.accessTime(with: time),
                        modification: time,
                        label: "folder.link.times")
                }
                guard
                    let made = try entries.entry(
                        name, in: folder.number, parent: "", readsMarks: false)
                else {
                    throw SystemError(errno: EPERM, label: "folder.link.check")
                }
                return TemporaryEntry(folder: folder, name: name, entry: made)
            }
        } catch {
            hidden.names.remove(name, in: folder)
            throw error
        }
    }

    /// Copies what the source holds; what is a hole there stays one.
    private func copy(_ contents: any ContentSource, to target: CInt, flag: CancellationFlag)
        throws(ProviderError)
    {
        guard contents.size > 0 else { return }
        let isComplete = try mapped("the upload failed") {
            () throws(SystemError) -> Result<Bool, ProviderError> in
            let isCloned = clone(contents.descriptor, to: target)
            // What is missing at the end would look like a hole.
            let found = try FileStatus.of(
                descriptor: contents.descriptor, label: "folder.upload.sourceSize"
            ).size
            guard found >= contents.size else { return Result<Bool, ProviderError>.success(false) }
            if isCloned {
                try truncate(target, to: contents.size, label: "folder.upload.size")
                return Result<Bool, ProviderError>.success(true)
            }
            var position: UInt64 = 0
            while position < contents.size {
                let data = nextData(in: contents.descriptor, from: position, to: contents.size)
                position = data.lower
                while position < data.upper {
                    do throws(ProviderError) { try flag.check() } catch {
                        return Result<Bool, ProviderError>.failure(error)
                    }
                    let count = min(data.upper - position, 16 << 20)
                    let copied = try copyBytes(
                        from: contents.descriptor, at: position, to: target, at: position,
                        count: count,
                        label: "folder.upload.copy")
                    guard copied == count else { return Result<Bool, ProviderError>.success(false) }
                    position += count
                    contents.noteSent(count)
                }
            }
            try truncate(target, to: contents.size, label: "folder.upload.size")
            return Result<Bool, ProviderError>.success(true)
        }
        guard try isComplete.get() else {
            throw ProviderError(.sourceChanged, "the file became shorter while it was sent")
        }
    }

    /// False where the file system takes no attributes.
    private func mark(_ file: CInt, identifier: ItemIdentifier, own: String) throws(SystemError)
        -> Bool
    {
        guard root.knownFacts?.hasAttributes == true else { return false }
        do throws(SystemError) {
            let value = IdentityMark.value(identifier: identifier, own: own)
            try setAttribute(
                IdentityMark.attribute, to: value, of: file, label: "folder.upload.mark")
            return true
        } catch {
            guard error.errno == EOPNOTSUPP || error.errno == EPERM || error.errno == EACCES else {
                throw error
            }
            return false
        }
    }
}
