import CAttributes
import Glibc
import PromiseCore

/// The folder of a file package by its absolute path. Blocks: to be used within `DocumentFile.onThread`.
struct PackageFolder: Sendable {
    let path: [UInt8]

    /// How the mount knows a folder that stays on this machine until it takes a package's place.
    private static let draftPrefix = Array(".promisefs-draft-".utf8)

    private struct Content {
        var files: [[UInt8]: FileStamp] = [:]
        var folders: [[UInt8]] = []
        var links: [[UInt8]: [UInt8]] = [:]
        /// Second versions that conflicts have left beside their files: no part of the document, and kept.
        var versions: [[UInt8]] = []
    }

    /// Nil when there is none.
    func stamp() throws(PromiseError) -> DocumentStamp? {
        try contentIfThere().map { DocumentStamp(files: $0.files) }
    }

    func read(
        _ progress: @Sendable (Int, Int) -> Void
    ) throws(PromiseError) -> (package: FilePackage, stamp: DocumentStamp) {
        // What is exchanged while it is read is read again: a mix of two versions is none.
        for _ in 0..<10 {
            let before = try content()
            guard let package = try read(before, progress), let after = try? content(), after.files == before.files
            else { continue }
            return (package, DocumentStamp(files: after.files))
        }
        throw PromiseError(
            .local, "\(escapedForDisplay(path)) is written all the time, so that it cannot be read as one", exitStatus: 4)
    }

    private func read(
        _ content: Content, _ progress: @Sendable (Int, Int) -> Void
    ) throws(PromiseError) -> FilePackage? {
        let total = content.files.values.reduce(0) { $0 + $1.size }
        var package = FilePackage()
        var done = 0
        for (name, stamp) in content.files.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            let file = DocumentFile(path: path + [0x2F] + name)
            let before = done
            let read: (bytes: [UInt8], stamp: FileStamp)
            do throws(PromiseError) {
                read = try file.read { count, _ in progress(before + count, total) }
            } catch {
                if try file.stamp() == nil { return nil }
                throw error
            }
            guard read.stamp == stamp else { return nil }
            package.files[name] = read.bytes
            done += read.bytes.count
        }
        return package
    }

    /// Writes a new folder beside it, and exchanges the two when all of it is on the disk. What is the same in both is no new
    /// file. `isNew`: throws when there is something already. `lastLook` throws where it is not to be replaced any more.
    func write(
        _ package: FilePackage, isNew: Bool, lastLook: () throws(PromiseError) -> Void,
        _ progress: @Sendable (Int, Int) -> Void
    ) throws(PromiseError) -> DocumentStamp {
        for name in package.files.keys where !PackageFolder.isPath(name) {
            throw PromiseError(.local, "\(escapedForDisplay(name)) is no path in a file package", exitStatus: 1)
        }
        let draft = makeDraftName()
        removeDrafts()
        // Of a process that was killed, and had this one's number.
        PackageFolder.remove(draft)
        // For nobody else until it has what the old one lets others do.
        guard draft.withCString({ mkdir($0, isNew ? 0o777 : 0o700) }) == 0 else {
            throw problem("cannot be saved beside itself")
        }
        defer { PackageFolder.remove(draft) }
        let old = isNew ? Content() : try content()
        for folder in old.folders {
            _ = (draft + [0x2F] + folder).withCString { mkdir($0, 0o700) }
        }
        for (name, target) in old.links {
            _ = target.withCString { target in (draft + [0x2F] + name).withCString { symlink(target, $0) } }
        }
        for name in old.versions where package.files[name] == nil {
            let present = path + [0x2F] + name
            _ = present.withCString { present in (draft + [0x2F] + name).withCString { link(present, $0) } }
        }
        let total = package.byteCount
        var done = 0
        for (name, bytes) in package.files {
            let before = done
            try put(bytes, name, in: draft, old.files[name]) { count, _ in progress(before + count, total) }
            done += bytes.count
        }
        // Deepest first: one that nobody may write in takes no change after that.
        for folder in old.folders.reversed() {
            let new = draft + [0x2F] + folder
            if hasFile(package, old, below: folder) {
                copyMode(of: path + [0x2F] + folder, to: new)
            } else {
                dropEmpty(new)
            }
        }
        try lastLook()
        try exchange(draft, isNew: isNew, old)
        guard let stamp = try stamp() else { throw problem("cannot be looked at") }
        // What has come into the package since was not saved: it is met at the next look.
        return DocumentStamp(files: stamp.files.filter { package.files[$0.key] != nil })
    }

    private func put(
        _ bytes: [UInt8], _ name: [UInt8], in draft: [UInt8], _ old: FileStamp?, _ progress: @Sendable (Int, Int) -> Void
    ) throws(PromiseError) {
        let new = draft + [0x2F] + name
        let present = DocumentFile(path: path + [0x2F] + name)
        for end in name.indices where name[end] == 0x2F {
            _ = (draft + [0x2F] + name[..<end]).withCString { mkdir($0, 0o777) }
        }
        if let old, old.size == bytes.count, present.isHere, let known = try? present.read({ _, _ in }), known.bytes == bytes,
            present.path.withCString({ present in new.withCString { link(present, $0) } }) == 0
        {
            return progress(bytes.count, bytes.count)
        }
        let file = DocumentFile.make(new, replacesOne: old != nil)
        guard file >= 0 else { throw problem("cannot be saved beside itself") }
        defer { close(file) }
        try DocumentFile(path: new).fill(file, with: bytes, progress)
        if old != nil { present.takeAttributes(to: file) }
        guard fsync(file) == 0 else { throw problem("cannot be written to the disk") }
    }

    private func exchange(_ draft: [UInt8], isNew: Bool, _ old: Content) throws(PromiseError) {
        if isNew {
            // rename(2) replaces an empty folder, and nothing else that could be there.
            var status = stat()
            guard path.withCString({ lstat($0, &status) }) != 0 else {
                errno = EEXIST
                throw problem("cannot be made")
            }
            guard draft.withCString({ draft in path.withCString { rename(draft, $0) } }) == 0 else {
                throw problem("cannot be made")
            }
            return
        }
        copyMode(of: path, to: draft)
        for isLast in [false, true] {
            let result = draft.withCString { draft in path.withCString { attributes_exchange(draft, $0) } }
            if result == 0 { return }
            // What is not here cannot be exchanged: only now it is fetched.
            guard errno == EXDEV, !isLast else { throw problem("cannot be replaced") }
            for name in old.files.keys { _ = try DocumentFile(path: path + [0x2F] + name).read { _, _ in } }
        }
    }

    private func copyMode(of folder: [UInt8], to draft: [UInt8]) {
        var status = stat()
        guard folder.withCString({ stat($0, &status) }) == 0 else { return }
        _ = draft.withCString { chown($0, status.st_uid, status.st_gid) }
        _ = draft.withCString { chmod($0, status.st_mode & 0o7777) }
    }

    // MARK: Folders

    private func content() throws(PromiseError) -> Content {
        guard let content = try contentIfThere() else { throw problem("cannot be listed") }
        return content
    }

    /// Nil when there is none; `errno` says why. What cannot be looked at is no change of it.
    private func contentIfThere() throws(PromiseError) -> Content? {
        var content = Content()
        var waiting: [[UInt8]] = [[]]
        while let folder = waiting.popLast() {
            let place = folder.isEmpty ? path : path + [0x2F] + folder
            guard let names = PackageFolder.names(in: place) else {
                guard DocumentFile.isGone(errno) else { throw problem("cannot be listed") }
                if folder.isEmpty { return nil }
                // Since its name was read.
                continue
            }
            for name in names {
                let relative = folder.isEmpty ? name : folder + [0x2F] + name
                var status = stat()
                let isThere = (path + [0x2F] + relative).withCString {
                    // As it is now, as of a file: `DocumentFile.stamp`.
                    _ = attributes_refresh($0)
                    return lstat($0, &status) == 0
                }
                guard isThere else {
                    guard DocumentFile.isGone(errno) else { throw problem("cannot be looked at") }
                    continue
                }
                switch status.st_mode & S_IFMT {
                case S_IFDIR:
                    content.folders.append(relative)
                    waiting.append(relative)
                case S_IFREG:
                    if PackageFolder.isVersion(path + [0x2F] + relative) {
                        content.versions.append(relative)
                    } else {
                        content.files[relative] = FileStamp(status)
                    }
                case S_IFLNK: content.links[relative] = PackageFolder.target(of: path + [0x2F] + relative)
                default: break
                }
            }
        }
        // Parents before what is in them.
        content.folders.sort { $0.lexicographicallyPrecedes($1) }
        return content
    }

    /// Nil when they cannot be read; `errno` says why.
    private static func names(in folder: [UInt8]) -> [[UInt8]]? {
        guard let stream = folder.withCString({ opendir($0) }) else { return nil }
        var names: [[UInt8]] = []
        var code: CInt = 0
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                code = errno
                break
            }
            let name = withUnsafeBytes(of: entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name != [0x2E] && name != [0x2E, 0x2E] { names.append(name) }
        }
        closedir(stream)
        errno = code
        return code == 0 ? names : nil
    }

    private static func target(of link: [UInt8]) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = link.withCString { link in bytes.withUnsafeMutableBytes { readlink(link, $0.baseAddress!, $0.count) } }
        return Array(bytes[..<max(count, 0)])
    }

    private static func remove(_ folder: [UInt8]) {
        var status = stat()
        // Nothing goes from a folder that its owner may not write in. No link is followed.
        if folder.withCString({ lstat($0, &status) }) == 0, status.st_mode & S_IFMT == S_IFDIR,
            status.st_mode & 0o700 != 0o700
        {
            _ = folder.withCString { fchmodat(AT_FDCWD, $0, 0o700, AT_SYMLINK_NOFOLLOW) }
        }
        for name in names(in: folder) ?? [] {
            let path = folder + [0x2F] + name
            if path.withCString({ unlink($0) }) != 0 { remove(path) }
        }
        _ = folder.withCString { rmdir($0) }
    }

    private func dropEmpty(_ folder: [UInt8]) { _ = folder.withCString { rmdir($0) } }

    private func hasFile(_ package: FilePackage, _ old: Content, below folder: [UInt8]) -> Bool {
        let below = folder + [0x2F]
        return package.files.keys.contains { $0.starts(with: below) } || old.versions.contains { $0.starts(with: below) }
    }

    private static func isVersion(_ path: [UInt8]) -> Bool {
        // What such a name always has in it: other files are not asked.
        guard String(decoding: path, as: UTF8.self).contains("conflict") else { return false }
        return DocumentFile(path: path).state == "conflicted"
    }

    private static func isPath(_ path: [UInt8]) -> Bool {
        path.split(separator: 0x2F, omittingEmptySubsequences: false).allSatisfy {
            !$0.isEmpty && $0 != [0x2E] && $0 != [0x2E, 0x2E] && !$0.contains(0)
        }
    }

    // MARK: Drafts

    private var parts: (folder: ArraySlice<UInt8>, name: ArraySlice<UInt8>) {
        let slash = path.lastIndex(of: 0x2F) ?? 0
        return (path[...slash], path[(slash + 1)...])
    }

    private func makeDraftName() -> [UInt8] {
        let mark = PackageFolder.draftPrefix + Array("\(DocumentFile.makeDraftMark())-".utf8)
        return parts.folder + mark + DocumentFile.stem(of: parts.name)
    }

    /// Those of this package that processes left which have ended.
    private func removeDrafts() {
        for name in PackageFolder.names(in: Array(parts.folder)) ?? [] where name.starts(with: PackageFolder.draftPrefix) {
            let stem = DocumentFile.stem(of: parts.name)
            let (digits, rest) = number(in: name.dropFirst(PackageFolder.draftPrefix.count))
            // Earlier versions counted no writes.
            let (write, ofNumbered) = number(in: rest)
            guard rest.elementsEqual(stem) || !write.isEmpty && ofNumbered.elementsEqual(stem),
                let process = pid_t(digits), kill(process, 0) != 0, errno == ESRCH
            else { continue }
            PackageFolder.remove(parts.folder + name)
        }
    }

    /// The digits that a name begins with, and what is behind the hyphen after them.
    private func number(in name: ArraySlice<UInt8>) -> (digits: String, rest: ArraySlice<UInt8>) {
        let digits = name.prefix { (0x30...0x39).contains($0) }
        return (String(decoding: digits, as: UTF8.self), name.dropFirst(digits.count + 1))
    }

    private func problem(_ what: String) -> PromiseError { DocumentFile(path: path).problem(what) }
}

/// Where a document is, file or package.
struct DocumentPlace: Sendable {
    let path: [UInt8]
    let isPackage: Bool

    /// Nil when there is none. Throws of status 4 when it cannot be looked at now.
    func stamp() throws(PromiseError) -> DocumentStamp? {
        do throws(PromiseError) {
            if isPackage { return try PackageFolder(path: path).stamp() }
            return try DocumentFile(path: path).stamp().map { DocumentStamp(files: [[]: $0]) }
        } catch {
            throw PromiseError(error.kind, error.message, exitStatus: 4)
        }
    }

    func read(_ progress: @Sendable (Int, Int) -> Void) throws(PromiseError) -> (data: DocumentData, stamp: DocumentStamp) {
        if isPackage {
            let read = try PackageFolder(path: path).read(progress)
            return (.package(read.package), read.stamp)
        }
        let read = try DocumentFile(path: path).read(progress)
        return (.file(read.bytes), DocumentStamp(files: [[]: read.stamp]))
    }

    func write(
        _ data: DocumentData, isNew: Bool, lastLook: () throws(PromiseError) -> Void,
        _ progress: @Sendable (Int, Int) -> Void
    ) throws(PromiseError) -> DocumentStamp {
        switch data {
        case .package(let package):
            return try PackageFolder(path: path).write(package, isNew: isNew, lastLook: lastLook, progress)
        case .file(let bytes):
            let file = DocumentFile(path: path)
            return DocumentStamp(
                files: [[]: try file.write(bytes, isNew: isNew, lastLook: lastLook, progress)])
        }
    }
}
