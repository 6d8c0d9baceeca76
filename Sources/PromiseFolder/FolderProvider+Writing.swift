import Glibc
package import PromiseCore
package import PromiseProvider
import PromiseSystem
import Synchronization

// Making, changing and removing items. Every step that takes effect is one rename, and what it took away is looked at
// afterwards: if somebody else changed it in between, it is put back and the caller told.

extension FolderProvider {
    package func create(
        _ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        try await onUploadPool { flag throws(ProviderError) in
            let place = try self.locateFolder(folder)
            return try self.writable.opening({ [place.folder] }) { () throws(ProviderError) in
                try self.make(item, in: place, contents: contents, flag: flag)
            }
        }
    }

    package func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?, baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        try await onUploadPool { flag throws(ProviderError) in
            try self.writable.opening({ () throws(ProviderError) in try self.written(reference, changes) }) {
                () throws(ProviderError) in
                try self.change(reference, changes, contents: contents, baseVersion: baseVersion, flag: flag)
            }
        }
    }

    package func delete(_ reference: ItemReference, baseVersion: ContentVersion?) async throws(ProviderError) {
        try await onUploadPool { _ throws(ProviderError) in
            do throws(ProviderError) {
                let located = try self.locate(reference)
                if located.entry.isAway { throw ProviderError(notMounted: self.display(located.path)) }
                try self.writable.opening({ located.writtenFolders() }) { () throws(ProviderError) in
                    try self.remove(located, baseVersion: baseVersion)
                }
            } catch {
                // Gone already is done.
                guard case .notFound = error.code else { throw error }
            }
        }
    }

    private func written(_ reference: ItemReference, _ changes: ItemChanges) throws(ProviderError) -> [OpenFolder] {
        guard let place = changes.place else { return try locate(reference).writtenFolders() }
        return try locate(reference).writtenFolders(try locateFolder(place.parent))
    }

    private func onUploadPool<Value: Sendable>(
        _ body: @escaping @Sendable (CancellationFlag) throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        let flag = CancellationFlag()
        let outcome: Result<Value, ProviderError> = await withTaskCancellationHandler {
            do throws(ProviderError) {
                return .success(
                    try await uploadPool.run { () throws(ProviderError) in
                        try flag.check()
                        return try body(flag)
                    })
            } catch {
                return .failure(error)
            }
        } onCancel: {
            flag.set()
        }
        return try outcome.get()
    }

    // MARK: Create

    private func make(
        _ item: NewItem, in folder: LocatedFolder, contents: (any ContentSource)?, flag: CancellationFlag
    ) throws(ProviderError) -> Item {
        try checkName(item.name, in: folder)
        // The answer to most conflicts, before anything is copied.
        let form = try freeForm(of: item.name, in: folder)
        var made: FolderEntry
        switch item.kind {
        case .folder: made = try makeFolder(item, as: form, in: folder)
        case .file:
            guard let contents else { throw ProviderError(.refused, "'\(item.name.display)' is a file without content") }
            let place = try temporaryPlace(for: folder.folder, device: folder.device)
            let file = try writeTemporaryFile(
                contents, metadata: item.metadata, keepsTime: true, replacing: nil, for: folder.folder, place: place, flag: flag)
            made = try put(file, as: form, of: item.name, in: folder, validating: contents, flag: flag)
        case .link:
            let place = try temporaryPlace(for: folder.folder, device: folder.device)
            let link = try makeTemporaryLink(item.target ?? [], metadata: item.metadata, for: folder.folder, place: place)
            made = try put(link, as: form, of: item.name, in: folder, validating: nil, flag: flag)
        default: throw ProviderError(.refused, "'\(item.name.display)' is neither file, folder nor link")
        }
        try synchronize(folder.folder)
        (made.name, made.shownName) = (form, item.name)
        learnForm(form, of: item.name, in: folder.text)
        made.identifier = made.identity.identifier(parent: folder.text, name: item.name)
        places.withLock { $0.learn(made.identifier, parent: folder.identifier, name: item.name) }
        return made.item(parent: folder.identifier)
    }

    /// Gives a temporary entry its name, if nobody has it.
    private func put(
        _ temporary: TemporaryEntry, as form: [UInt8], of name: FileName, in folder: LocatedFolder,
        validating contents: (any ContentSource)?, flag: CancellationFlag
    ) throws(ProviderError) -> FolderEntry {
        do throws(ProviderError) {
            try flag.check()
            try contents?.validate()
            beforeTakingEffect?()
            try moveIfFree(
                temporary.name, in: temporary.folder.number, to: form, in: folder.folder.number,
                "'\(name.display)' cannot be made")
            return temporary.entry
        } catch {
            remove(temporary.name, in: temporary.folder)
            throw error
        }
    }

    private func makeFolder(
        _ item: NewItem, as name: [UInt8], in folder: LocatedFolder
    ) throws(ProviderError) -> FolderEntry {
        try mapped("the folder '\(item.name.display)' cannot be made") { () throws(SystemError) in
            try PromiseSystem.makeFolder(name, in: folder.folder.number, label: "folder.create.folder")
            let made = try folder.folder.open(name)
            try setMetadata(item.metadata, of: made.number, current: nil)
            let status = try FileStatus.of(descriptor: made.number, label: "folder.create.status")
            let own = try ownIdentity([], in: made.number, status: status)
            return described(name, item.name, status, own: own, base: own)
        }
    }

    private func checkName(_ name: FileName, in folder: LocatedFolder) throws(ProviderError) {
        guard !ReservedName.contains(name.bytes, inRoot: folder.isRoot) else {
            throw ProviderError(.refused, "the name '\(name.display)' is reserved in the folder: choose another")
        }
    }

    // MARK: Modify

    private func change(
        _ reference: ItemReference, _ changes: ItemChanges, contents: (any ContentSource)?, baseVersion: ContentVersion?,
        flag: CancellationFlag
    ) throws(ProviderError) -> Item {
        var located = try locate(reference)
        if located.entry.isAway { throw ProviderError(notMounted: display(located.path)) }
        // Also something of another kind has another version.
        if let baseVersion, located.entry.version != baseVersion { throw changed(located) }
        var destination: (folder: LocatedFolder, name: FileName, form: [UInt8])?
        var isOtherCase = false
        if let place = changes.place {
            let folder = try locateFolder(place.parent)
            if folder.text != located.folderText || place.name != located.entry.shownName {
                try checkName(place.name, in: folder)
                isOtherCase = try self.isOtherCase(place.name, in: folder, of: located)
                let form = isOtherCase ? stored(place.name) : try freeForm(of: place.name, in: folder)
                destination = (folder, place.name, form)
            }
        }
        if contents != nil || changes.target != nil {
            guard located.parent != nil, baseVersion != nil else {
                throw ProviderError(.conflict, "content is replaced only with the version it replaces")
            }
            located = try replace(located, changes, contents: contents, flag: flag)
        } else if let metadata = changes.metadata {
            located = try applyMetadata(metadata, to: located)
        }
        if let destination {
            guard located.parent != nil else { throw ProviderError(.refused, "the root of the folder cannot be moved") }
            shared.withLock { $0.movesBegun += 1 }
            defer { shared.withLock { $0.movesEnded += 1 } }
            let old = located.path
            let aside = isOtherCase ? try moveAside(located) : located
            do throws(ProviderError) {
                located = try move(aside, to: destination.folder, name: destination.name, form: destination.form)
            } catch {
                // Only when somebody took the name in this moment; then it stays where it is, for all to see.
                let (name, form) = (located.entry.shownName, located.entry.name)
                if isOtherCase { _ = try? move(aside, to: destination.folder, name: name, form: form) }
                throw error
            }
            learnPlace(of: located)
            shared.withLock { $0.moved.note(from: old, to: located.path) }
        } else {
            learnPlace(of: located)
        }
        return located.item
    }

    private func learnPlace(of located: LocatedItem) {
        guard let parent = located.parent else { return }
        places.withLock { $0.learn(located.entry.identifier, parent: parent, name: located.entry.shownName) }
    }

    /// Puts new content or a new target in the place of the old one.
    private func replace(
        _ located: LocatedItem, _ changes: ItemChanges, contents: (any ContentSource)?, flag: CancellationFlag
    ) throws(ProviderError) -> LocatedItem {
        let status = located.entry.status
        guard status.kind == (contents == nil ? .link : .file) else { throw changed(located) }
        let place = try temporaryPlace(for: located.folder, device: status.device)
        let temporary: TemporaryEntry
        if let contents {
            temporary = try writeTemporaryFile(
                contents, metadata: changes.metadata ?? status.metadata, keepsTime: changes.metadata != nil,
                replacing: located.entry, for: located.folder, place: place, flag: flag)
        } else {
            temporary = try makeTemporaryLink(changes.target ?? [], metadata: changes.metadata, for: located.folder, place: place)
        }
        var replaced = try exchange(temporary, with: located, validating: contents, flag: flag)
        try synchronize(located.folder)
        (replaced.name, replaced.shownName) = (located.entry.name, located.entry.shownName)
        if !replaced.identity.isLasting { replaced.identifier = located.entry.identifier }
        var result = located
        result.entry = replaced
        return result
    }

    private func applyMetadata(_ metadata: Metadata, to located: LocatedItem) throws(ProviderError) -> LocatedItem {
        // A new time is a new version, so nobody's content may come in between.
        if metadata.modificationTime != located.entry.status.modificationTime, located.entry.status.kind == .file {
            return try withStoreLock { () throws(ProviderError) in
                guard try isUnchanged(located) else { throw changed(located) }
                return try setMetadata(metadata, of: located)
            }
        }
        return try setMetadata(metadata, of: located)
    }

    private func setMetadata(_ metadata: Metadata, of located: LocatedItem) throws(ProviderError) -> LocatedItem {
        let status = located.entry.status
        let name = located.entry.name
        return try mapped("'\(display(located.path))' cannot be changed") { () throws(SystemError) in
            let flags = openPathOnly | O_NOFOLLOW
            let file = try Descriptor.open(name, in: located.folder.number, flags: flags, label: "folder.metadata.open")
            let now = try FileStatus.of(descriptor: file.number, label: "folder.metadata.status")
            guard try ownIdentity([], in: file.number, status: now) == located.entry.identity.own else {
                throw SystemError(errno: EEXIST, label: "folder.metadata.open")
            }
            if status.kind == .link {
                if !kept.contains(.linkMetadata) { return located }
                try setOwner(metadata, of: [], in: file.number)
                let time = metadata.modificationTime
                try setTimes(
                    of: name, in: located.folder.number, access: accessTime(with: time), modification: time,
                    label: "folder.metadata.times")
            } else {
                try setMetadata(metadata, of: file.number, current: now)
            }
            var result = located
            result.entry.status = try FileStatus.of(descriptor: file.number, label: "folder.metadata.status")
            return result
        }
    }

    /// Of a file or folder held by an O_PATH descriptor. What is as it shall be is not touched, so that no event is raised.
    private func setMetadata(_ metadata: Metadata, of file: CInt, current: FileStatus?) throws(SystemError) {
        if current?.owner != metadata.owner || current?.group != metadata.group {
            try setOwner(metadata, of: [], in: file)
        }
        writable.gave(metadata.mode, to: file)
        try withCPath(descriptorPath(file)) { path throws(SystemError) in
            // The owner may have taken set-id bits with it, so an unchanged mode is set again for root.
            if current?.permissions != metadata.mode || geteuid() == 0 {
                try ignoringRefusal { () throws(SystemError) in
                    _ = try call("folder.metadata.mode") { chmod(path, metadata.mode & 0o7777) }
                }
            }
            guard current?.modificationTime != metadata.modificationTime else { return }
            let modified = metadata.modificationTime
            let time = timespec(tv_sec: modified.seconds, tv_nsec: modified.nanosecondPart)
            let omitted = timespec(tv_sec: 0, tv_nsec: (1 << 30) - 2)
            let times = [accessTime(with: modified) == nil ? omitted : time, time]
            _ = try call("folder.metadata.times") { utimensat(AT_FDCWD, path, times, 0) }
        }
    }

    private func move(
        _ located: LocatedItem, to folder: LocatedFolder, name: FileName, form: [UInt8]
    ) throws(ProviderError) -> LocatedItem {
        let (old, what) = (located.entry.name, "'\(display(located.path))' cannot be moved")
        beforeTakingEffect?()
        try moveIfFree(old, in: located.folder.number, to: form, in: folder.folder.number, what)
        learnForm(form, of: name, in: folder.text)
        return try mapped(what) { () throws(SystemError) in
            let found = try entry(
                form, in: folder.folder.number, parent: folder.text,
                readsMarks: shared.withLock { $0.hasStore && $0.root?.hasAttributes == true })
            guard var found, found.isSame(as: located.entry) else {
                // Another item had taken the name meanwhile and was moved instead of ours.
                try moveWithoutReplacing(form, in: folder.folder.number, to: old, in: located.folder.number)
                throw SystemError(errno: EEXIST, label: "folder.move.check")
            }
            // Also one whose mark is not believed.
            found.identity.base = located.entry.identity.base
            found.identifier = found.identity.identifier(parent: folder.text, name: found.shownName)
            return LocatedItem(
                folder: folder.folder, folderText: folder.text, parent: folder.identifier, entry: found,
                path: folder.path + [name])
        }
    }

    /// renameat2(2) with RENAME_NOREPLACE; where the file system does not know it, a check and a rename, which no other daemon
    /// of ours comes between.
    func moveIfFree(
        _ from: [UInt8], in fromFolder: CInt, to: [UInt8], in toFolder: CInt, _ what: String
    ) throws(ProviderError) {
        do throws(SystemError) {
            return try rename(from, in: fromFolder, to: to, in: toFolder, flags: .noReplace, label: "folder.move.rename")
        } catch {
            guard isUnknownFlag(error) else { throw ProviderError(error, what) }
        }
        try withStoreLock { () throws(ProviderError) in
            do throws(SystemError) {
                try moveWithoutReplacing(from, in: fromFolder, to: to, in: toFolder)
            } catch {
                // A folder does not go into itself; that is for the planner to see, not a refusal of the store.
                throw ProviderError(error.errno == EINVAL ? SystemError(errno: EEXIST, label: error.label) : error, what)
            }
        }
    }

    private func isUnknownFlag(_ error: SystemError) -> Bool { [EINVAL, ENOSYS, EOPNOTSUPP].contains(error.errno) }

    /// As `moveIfFree`, for who has the store's lock.
    func moveWithoutReplacing(_ from: [UInt8], in fromFolder: CInt, to: [UInt8], in toFolder: CInt) throws(SystemError) {
        do throws(SystemError) {
            try rename(from, in: fromFolder, to: to, in: toFolder, flags: .noReplace, label: "folder.move.rename")
            return
        } catch {
            guard isUnknownFlag(error) else { throw error }
        }
        do throws(SystemError) {
            _ = try FileStatus.of(to, in: toFolder, label: "folder.move.status")
        } catch {
            guard error.errno == ENOENT else { throw error }
            return try rename(from, in: fromFolder, to: to, in: toFolder, label: "folder.move.rename")
        }
        throw SystemError(errno: EEXIST, label: "folder.move.rename")
    }

    /// Makes a rename in a folder last over a power cut.
    private func synchronize(_ folder: OpenFolder) throws(ProviderError) {
        guard isDurable else { return }
        try mapped("a change of the folder cannot be made durable") { () throws(SystemError) in
            do throws(SystemError) {
                let descriptor = try folder.openForReading()
                try PromiseSystem.synchronize(descriptor.number, dataOnly: false, label: "folder.sync")
            } catch {
                // A folder that may not be read, and file systems that cannot do this for folders.
                guard [EACCES, EINVAL, EOPNOTSUPP, ENOSYS].contains(error.errno) else { throw error }
            }
        }
    }

    func changed(_ located: LocatedItem) -> ProviderError {
        ProviderError(.conflict, "'\(display(located.path))' was changed in the folder")
    }
}
