import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem

/// Files in `.promisefs/KIND`. A version is made of the file's content and identity; who writes has
/// the turn of the lock file, and a new content is whole and on the disk before it takes the name.
struct FolderPrivateObjects: PrivateObjects {
    let provider: FolderProvider
    private var hidden: HiddenFolder { provider.hidden }
    private var lock: FolderLock { provider.lock }
    private var root: FolderRoot { provider.root }
    private var pool: BlockingPool { provider.pool }

    func read(_ name: PrivateName) async throws(ProviderError) -> PrivateObject? {
        try await pool.runUnlessCancelled { [self] () throws(ProviderError) in
            guard let folder = try known(name.kind) else { return nil }
            return try object(name, in: folder)
        }
    }

    func write(
        _ bytes: [UInt8], to name: PrivateName, base: ContentVersion?
    ) async throws(ProviderError) -> ContentVersion {
        try await pool.runUnlessCancelled { [self] () throws(ProviderError) in
            // What a killed daemon leaves there is removed with the uploads.
            let uploads = try hidden.openUploads()
            let folder = try hidden.openHidden(Array(name.kind.rawValue.utf8))
            let draft = hidden.names.name(.store)
            do throws(ProviderError) {
                try mapped("\(name) cannot be written") { () throws(SystemError) in
                    try put(bytes, draft, uploads)
                }
                return try lock.withTurn { () throws(ProviderError) in
                    guard try object(name, in: folder)?.version == base else { throw changed(name) }
                    try mapped("\(name) cannot take its place") { () throws(SystemError) in
                        try rename(
                            draft, in: uploads.number, to: name.fileName.bytes, in: folder.number,
                            label: "folder.object.rename")
                        if root.isDurable {
                            let list = try folder.openForReading()
                            try synchronize(
                                list.number, dataOnly: false, label: "folder.object.sync")
                        }
                    }
                    guard let now = try object(name, in: folder), now.bytes == bytes else {
                        throw changed(name)
                    }
                    return now.version
                }
            } catch {
                hidden.names.remove(draft, in: uploads)
                throw error
            }
        }
    }

    func list(_ kind: PrivateName.Kind) async throws(ProviderError) -> [PrivateName] {
        try await pool.runUnlessCancelled { [self] () throws(ProviderError) in
            guard let folder = try known(kind) else { return [] }
            let names = try mapped("'.promisefs/\(kind.rawValue)' cannot be listed") {
                () throws(SystemError) in
                try listFolder(try folder.openForReading(), label: "folder.object.list").map(\.name)
            }
            return names.compactMap { name in
                String(validating: name, as: UTF8.self).flatMap { PrivateName(kind, $0) }
            }
        }
    }

    func delete(_ name: PrivateName, base: ContentVersion) async throws(ProviderError) {
        try await pool.runUnlessCancelled { [self] () throws(ProviderError) in
            guard let folder = try known(name.kind), try version(name, in: folder) != nil else {
                return
            }
            try lock.withTurn { () throws(ProviderError) in
                guard let now = try version(name, in: folder) else { return }
                guard now == base else { throw changed(name) }
                try mapped("\(name) cannot be removed") { () throws(SystemError) in
                    try unlink(
                        name.fileName.bytes, in: folder.number, label: "folder.object.remove")
                }
            }
        }
    }

    func fetchTooLarge(
        _ name: PrivateName, into sink: any ContentSink
    ) async throws(ProviderError) -> ContentVersion? {
        try await pool.runUnlessCancelled { [self] () throws(ProviderError) in
            guard let folder = try known(name.kind),
                let (file, status) = try tooLarge(name, in: folder)
            else {
                return nil
            }
            let count = try sink.copy(from: file.number, at: 0, to: 0, count: status.size)
            guard count == status.size else { throw changed(name) }
            return version(ofTooLarge: status)
        }
    }

    private func version(_ name: PrivateName, in folder: OpenFolder) throws(ProviderError)
        -> ContentVersion?
    {
        if let (_, status) = try tooLarge(name, in: folder) { return version(ofTooLarge: status) }
        return try object(name, in: folder)?.version
    }

    private func version(ofTooLarge status: FileStatus) -> ContentVersion {
        ContentVersion("\(status.size)-large-\(status.inode)-\(status.modificationTime.rawValue)")
    }

    private func tooLarge(
        _ name: PrivateName, in folder: OpenFolder
    ) throws(ProviderError) -> (SharedDescriptor, FileStatus)? {
        do throws(SystemError) {
            let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK
            let file = try Descriptor.open(
                name.fileName.bytes, in: folder.number, flags: flags,
                label: "folder.object.openLarge")
            let status = try FileStatus.of(
                descriptor: file.number, label: "folder.object.statusLarge")
            guard status.kind == .file, status.size > PrivateObject.byteCountMax else { return nil }
            return (SharedDescriptor(file), status)
        } catch {
            if error.errno == ENOENT { return nil }
            throw ProviderError(error, "\(name) cannot be looked at")
        }
    }

    private func changed(_ name: PrivateName) -> ProviderError {
        ProviderError(.conflict, "\(name) was changed or made by another machine meanwhile")
    }

    /// Nil when nobody has written one yet: looking makes no folder.
    private func known(_ kind: PrivateName.Kind) throws(ProviderError) -> OpenFolder? {
        let top = try root.open()
        do throws(SystemError) {
            return try top.open(ReservedName.folder).open(Array(kind.rawValue.utf8))
        } catch {
            if error.errno == ENOENT { return nil }
            throw ProviderError(
                error, "'\(root.displayPath)/.promisefs/\(kind.rawValue)' cannot be used")
        }
    }

    private func object(_ name: PrivateName, in folder: OpenFolder) throws(ProviderError)
        -> PrivateObject?
    {
        do throws(SystemError) {
            let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK
            let file = try Descriptor.open(
                name.fileName.bytes, in: folder.number, flags: flags, label: "folder.object.open")
            let status = try FileStatus.of(descriptor: file.number, label: "folder.object.status")
            guard status.kind == .file, status.size <= PrivateObject.byteCountMax else {
                throw SystemError(errno: EFBIG, label: "folder.object.size")
            }
            var bytes = [UInt8](repeating: 0, count: Int(status.size))
            let outcome: Result<Int, SystemError> = bytes.withUnsafeMutableBytes { buffer in
                do throws(SystemError) {
                    return .success(
                        try readFully(file.number, into: buffer, at: 0, label: "folder.object.read")
                    )
                } catch {
                    return .failure(error)
                }
            }
            bytes.removeLast(bytes.count - (try outcome.get()))
            var hash = FowlerNollVoHash()
            hash.add(bytes)
            let version =
                "\(bytes.count)-\(hash.text)-\(status.inode)-\(status.modificationTime.rawValue)"
            return PrivateObject(bytes: bytes, version: ContentVersion(version))
        } catch {
            if error.errno == ENOENT { return nil }
            if error.errno == EFBIG { throw PrivateObject.tooLarge(name) }
            throw ProviderError(error, "\(name) cannot be read")
        }
    }

    private func put(_ bytes: [UInt8], _ name: [UInt8], _ folder: OpenFolder) throws(SystemError) {
        // As readable as the folder is: those who share it share what is kept in it.
        let file = try Descriptor.open(
            name, in: folder.number, flags: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o644,
            label: "folder.object.make")
        try writeFully(file.number, bytes, at: 0, label: "folder.object.write")
        if root.isDurable {
            try synchronize(file.number, dataOnly: false, label: "folder.object.content")
        }
    }
}
