package import PromiseCore
package import PromiseProvider
import PromiseSystem
import Synchronization

// Making, changing and removing items. Every step that takes effect is one rename, and what it took
// away is looked at afterwards: if somebody else changed it in between, it is put back and the
// caller told.

extension FolderProvider {
    package func create(
        _ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        try await uploadPool.runTellingCancellation { flag throws(ProviderError) in
            let place = try self.locator.locateFolder(folder)
            return try self.writable.opening({ [place.folder] }) { () throws(ProviderError) in
                try self.make(item, in: place, contents: contents, flag: flag)
            }
        }
    }

    package func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?,
        baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        try await uploadPool.runTellingCancellation { flag throws(ProviderError) in
            try self.writable.opening({ () throws(ProviderError) in
                try self.written(reference, changes)
            }) {
                () throws(ProviderError) in
                try self.change(
                    reference, changes, contents: contents, baseVersion: baseVersion, flag: flag)
            }
        }
    }

    package func delete(_ reference: ItemReference, baseVersion: ContentVersion?)
        async throws(ProviderError)
    {
        try await uploadPool.runTellingCancellation { _ throws(ProviderError) in
            do throws(ProviderError) {
                let located = try self.locator.locate(reference)
                if located.entry.isAway { throw ProviderError(notMounted: display(located.path)) }
                try self.writable.opening({ located.writtenFolders() }) {
                    () throws(ProviderError) in
                    try self.remover.remove(located, baseVersion: baseVersion)
                }
            } catch {
                // Gone already is done.
                guard case .notFound = error.code else { throw error }
            }
        }
    }

    private func written(_ reference: ItemReference, _ changes: ItemChanges) throws(ProviderError)
        -> [OpenFolder]
    {
        guard let place = changes.place else {
            return try locator.locate(reference).writtenFolders()
        }
        return try locator.locate(reference).writtenFolders(try locator.locateFolder(place.parent))
    }

    // MARK: Create

    private func make(
        _ item: NewItem, in folder: LocatedFolder, contents: (any ContentSource)?,
        flag: CancellationFlag
    ) throws(ProviderError) -> Item {
        try checkName(item.name, in: folder)
        // The answer to most conflicts, before anything is copied.
        let form = try locator.names.freeForm(of: item.name, in: folder)
        var made: FolderEntry
        switch item.kind {
        case .folder: made = try makeFolder(item, as: form, in: folder)
        case .file:
            guard let contents else {
                throw ProviderError(.refused, "'\(item.name.display)' is a file without content")
            }
            let place = try hidden.temporaryPlace(for: folder.folder, device: folder.device)
            let file = try files.write(
                contents, metadata: item.metadata, keepsTime: true, replacing: nil,
                for: folder.folder, place: place, flag: flag)
            made = try put(
                file, as: form, of: item.name, in: folder, validating: contents, flag: flag)
        case .link:
            let place = try hidden.temporaryPlace(for: folder.folder, device: folder.device)
            let link = try files.link(
                item.target ?? [], metadata: item.metadata, for: folder.folder, place: place)
            made = try put(link, as: form, of: item.name, in: folder, validating: nil, flag: flag)
        default:
            throw ProviderError(.refused, "'\(item.name.display)' is neither file, folder nor link")
        }
        try renames.synchronize(folder.folder)
        (made.name, made.shownName) = (form, item.name)
        locator.names.learnForm(form, of: item.name, in: folder.text)
        made.identifier = made.identity.identifier(parent: folder.text, name: item.name)
        locator.places.withLock {
            $0.learn(made.identifier, parent: folder.identifier, name: item.name)
        }
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
            try renames.moveIfFree(
                temporary.name, in: temporary.folder.number, to: form, in: folder.folder.number,
                "'\(name.display)' cannot be made")
            return temporary.entry
        } catch {
            hidden.names.remove(temporary.name, in: temporary.folder)
            throw error
        }
    }

    private func makeFolder(
        _ item: NewItem, as name: [UInt8], in folder: LocatedFolder
    ) throws(ProviderError) -> FolderEntry {
        try mapped("the folder '\(item.name.display)' cannot be made") { () throws(SystemError) in
            try PromiseSystem.makeFolder(
                name, in: folder.folder.number, label: "folder.create.folder")
            let made = try folder.folder.open(name)
            try metadata.set(item.metadata, of: made.number, current: nil)
            let status = try FileStatus.of(descriptor: made.number, label: "folder.create.status")
            let own = try root.ownIdentity([], in: made.number, status: status)
            return locator.entries.described(name, item.name, status, own: own, base: own)
        }
    }

    private func checkName(_ name: FileName, in folder: LocatedFolder) throws(ProviderError) {
        guard !ReservedName.contains(name.bytes, inRoot: folder.isRoot) else {
            throw ProviderError(
                .refused, "the name '\(name.display)' is reserved in the folder: choose another")
        }
    }

    // MARK: Modify

    private func change(
        _ reference: ItemReference, _ changes: ItemChanges, contents: (any ContentSource)?,
        baseVersion: ContentVersion?,
        flag: CancellationFlag
    ) throws(ProviderError) -> Item {
        var located = try locator.locate(reference)
        if located.entry.isAway { throw ProviderError(notMounted: display(located.path)) }
        // Also something of another kind has another version.
        if let baseVersion, located.entry.version != baseVersion {
            throw ProviderError.changed(located)
        }
        var destination: (folder: LocatedFolder, name: FileName, form: [UInt8])?
        var isOtherCase = false
        if let place = changes.place {
            let folder = try locator.locateFolder(place.parent)
            if folder.text != located.folderText || place.name != located.entry.shownName {
                try checkName(place.name, in: folder)
                isOtherCase = try mover.isOtherCase(place.name, in: folder, of: located)
                let form =
                    isOtherCase
                    ? locator.names.stored(place.name)
                    : try locator.names.freeForm(of: place.name, in: folder)
                destination = (folder, place.name, form)
            }
        }
        if contents != nil || changes.target != nil {
            guard located.parent != nil, baseVersion != nil else {
                throw ProviderError(
                    .conflict, "content is replaced only with the version it replaces")
            }
            located = try replace(located, changes, contents: contents, flag: flag)
        } else if changes.metadata != nil {
            located = try applyMetadata(changes, to: located)
        }
        if let destination {
            guard located.parent != nil else {
                throw ProviderError(.refused, "the root of the folder cannot be moved")
            }
            located = try move(located, to: destination, isOtherCase: isOtherCase)
        } else {
            locator.learn(located)
        }
        return located.item
    }

    private func move(
        _ located: LocatedItem, to place: (folder: LocatedFolder, name: FileName, form: [UInt8]),
        isOtherCase: Bool
    ) throws(ProviderError) -> LocatedItem {
        try locator.moving { () throws(ProviderError) in
            let aside = isOtherCase ? try mover.moveAside(located) : located
            let moved: LocatedItem
            do throws(ProviderError) {
                moved = try mover.move(aside, to: place.folder, name: place.name, form: place.form)
            } catch {
                // Only when somebody took the name in this moment; then it stays where it is, for
                // all to see.
                let (name, form) = (located.entry.shownName, located.entry.name)
                if isOtherCase {
                    _ = try? mover.move(aside, to: place.folder, name: name, form: form)
                }
                throw error
            }
            locator.learn(moved)
            locator.noteMove(from: located.path, to: moved.path)
            return moved
        }
    }

    /// Puts new content or a new target in the place of the old one.
    private func replace(
        _ located: LocatedItem, _ changes: ItemChanges, contents: (any ContentSource)?,
        flag: CancellationFlag
    ) throws(ProviderError) -> LocatedItem {
        let status = located.entry.status
        guard status.kind == (contents == nil ? .link : .file) else {
            throw ProviderError.changed(located)
        }
        let place = try hidden.temporaryPlace(for: located.folder, device: status.device)
        let temporary: TemporaryEntry
        if let contents {
            temporary = try files.write(
                contents, metadata: try metadata.wanted(changes, of: located),
                keepsTime: changes.metadata != nil,
                replacing: located.entry, for: located.folder, place: place, flag: flag)
        } else {
            temporary = try files.link(
                changes.target ?? [], metadata: changes.metadata(over: status.metadata),
                for: located.folder, place: place)
        }
        var replaced = try exchange.exchange(
            temporary, with: located, validating: contents, flag: flag)
        try renames.synchronize(located.folder)
        (replaced.name, replaced.shownName) = (located.entry.name, located.entry.shownName)
        if !replaced.identity.isLasting { replaced.identifier = located.entry.identifier }
        var result = located
        result.entry = replaced
        return result
    }

    private func applyMetadata(
        _ changes: ItemChanges, to located: LocatedItem
    ) throws(ProviderError) -> LocatedItem {
        // A new time is a new version, so nobody's content may come in between.
        if changes.metadata?.modificationTime != located.entry.status.modificationTime,
            located.entry.status.kind == .file
        {
            return try lock.withTurn { () throws(ProviderError) in
                guard try exchange.isUnchanged(located) else {
                    throw ProviderError.changed(located)
                }
                return try metadata.set(changes, of: located)
            }
        }
        return try metadata.set(changes, of: located)
    }
}
