import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem
import PromiseWire

/// Gives an application its right to what was picked. The one place where an application's rights
/// grow.
public protocol PickerGrants: Sendable {
    /// After it the application may use the item for as long as it runs; what it needs for that is
    /// in the answer.
    func grant(_ item: PickerItem, to application: String) async throws -> PickedDocument
}

/// Carries out what a person has decided, by the mounts and their daemons.
public struct MountedConsequences: PickerConsequences {
    private let data: MountedData
    private let application: String?
    private let grants: any PickerGrants
    /// Who asks from inside a view: what it names is read by no link, with the person's rights.
    private let launch: PickerLaunch?
    /// Told of each temporary folder before something is in it.
    private let importing: (@Sendable ([UInt8]) -> Void)?

    /// `grants`: who gives the application its rights, where it is not for a launch, or until revoked.
    public init(
        _ data: MountedData, application: String?, launch: PickerLaunch? = nil,
        grants: (any PickerGrants)? = nil, importing: (@Sendable ([UInt8]) -> Void)? = nil
    ) {
        self.importing = importing
        self.data = data
        self.application = application
        self.grants = grants ?? launch.map { LaunchGrants(data, $0) } ?? LastingGrants(data)
        self.launch = launch
    }

    public func perform(_ consequences: [PickerConsequence]) async throws -> [PickedDocument] {
        if consequences.count > 1 { try await checkNames(of: consequences) }
        var result: [PickedDocument] = []
        for consequence in consequences { result.append(try await perform(consequence)) }
        return result
    }

    /// Of several nothing is brought when the name of one is taken: the person is asked again, and may cancel.
    private func checkNames(of consequences: [PickerConsequence]) async throws {
        var targets: Set<[UInt8]> = []
        for consequence in consequences {
            let (folder, name): (PickerFolder, [UInt8])
            switch consequence {
            case .export(_, let place, let given), .move(_, let place, let given): (folder, name) = (place, given)
            default: continue
            }
            let target = try data.absolutePath(of: folder.child(name), in: folder.domain)
            let isThere = try await FileWork.run { FileWork.exists(target) }
            guard targets.insert(target).inserted, !isThere else { throw taken(name) }
        }
    }

    private func taken(_ name: [UInt8]) -> PromiseError {
        PromiseError(
            .local, "there is a '\(escapedForDisplay(name))' already; give it another name", exitStatus: 6)
    }

    private func perform(_ consequence: PickerConsequence) async throws -> PickedDocument {
        switch consequence {
        case .open(let item):
            guard let application else { return PickedDocument(path: try await existing(item)) }
            return try await grants.grant(item, to: application)
        case .copyOut(let item): return try await copyOut(item)
        case .export(let source, let folder, let name):
            return try await bring(source, folder, name, leavesReference: false)
        case .move(let source, let folder, let name): return try await move(source, folder, name)
        case .save(let folder, let name, let isConfirmed):
            return try await save(folder, name, isConfirmed)
        case .create(let folder, let name):
            let item = PickerItem(domain: folder.domain, path: folder.child(name), kind: "file")
            let path = try path(item)
            let place = try data.place(of: folder.path, in: folder.domain)
            // Nobody can have a claim on what is not there.
            try await FileWork.run { try OpenedFolder(place).create(name) }
            guard let application else { return PickedDocument(path: path) }
            return try await grants.grant(item, to: application)
        }
    }

    /// Whoever asked writes there; what is there already is replaced only when the person knows.
    private func save(
        _ folder: PickerFolder, _ name: [UInt8], _ isConfirmed: Bool
    ) async throws -> PickedDocument {
        let item = PickerItem(domain: folder.domain, path: folder.child(name), kind: "file")
        let path = try path(item)
        let place = try data.place(of: folder.path, in: folder.domain)
        let (opened, kind) = try await FileWork.run {
            let opened = try OpenedFolder(place)
            return (opened, opened.kind(name))
        }
        if let kind, !isConfirmed || kind == .folder {
            let shown = escapedForDisplay(name)
            throw PromiseError(
                .local,
                kind == .folder
                    ? "'\(shown)' is a folder; give another name"
                    : "there is a '\(shown)' already; say it once more to have it replaced",
                exitStatus: 6)
        }
        guard let application else { return PickedDocument(path: path) }
        // What is given has to be there.
        if kind == nil { try await FileWork.run { try opened.create(name) } }
        return try await grants.grant(item, to: application)
    }

    /// What was shown may have gone since then.
    private func existing(_ item: PickerItem) async throws -> [UInt8] {
        let path = try path(item)
        guard try await FileWork.run({ FileWork.exists(path) }) else {
            let name = escapedForDisplay(item.path.split(separator: 0x2F).last ?? [])
            throw PromiseError(.local, "'\(name)' is gone; look again", exitStatus: 1)
        }
        return path
    }

    private func path(_ item: PickerItem) throws -> [UInt8] {
        try data.absolutePath(of: item.path, in: item.domain)
    }

    private func coordinated<Value: Sendable>(
        _ domain: String, _ intents: [FileAccessIntent], _ body: @Sendable () async throws -> Value
    ) async throws -> Value {
        let coordinator = FileCoordinator(try data.client(of: domain))
        return try await coordinator.coordinate(intents, timeout: .seconds(60)) { _ in
            try await body()
        }
    }

    /// One state of the document, as a file of its own. The folder around it is whose asked, who
    /// removes it.
    private func copyOut(_ item: PickerItem) async throws -> PickedDocument {
        let source = try path(item)
        if let launch { return try await bringIn(item, launch.imports) }
        let folder = try await FileWork.run { try FileWork.makeTemporaryFolder() }
        importing?(folder)
        let target = folder + [0x2F] + item.name
        do {
            try await coordinated(item.domain, [.reading(item.path)]) {
                try await FileWork.run {
                    let document = try FileWork.openDocument(source)
                    let opened = try OpenedFolder(folder)
                    try opened.rename(try opened.copy(document, of: source), to: item.name)
                }
            }
        } catch {
            try? await FileWork.run { _ = FileWork.withPath(folder) { rmdir($0) } }
            throw error
        }
        return PickedDocument(path: target)
    }

    /// The same in a launch's view, with which it goes.
    private func bringIn(
        _ item: PickerItem, _ imports: PickerFolder
    ) async throws -> PickedDocument {
        let source = try data.place(of: item.path, in: item.domain)
        let folder = try data.place(of: imports.path, in: imports.domain)
        let name = try await coordinated(item.domain, [.reading(item.path)]) {
            try await FileWork.run {
                let opened = try OpenedFolder(folder)
                let document = try source.openDocument()
                let copy = try opened.copy(document, of: source.absolutePath)
                do {
                    return try opened.nameFreely(copy, item.name)
                } catch {
                    opened.remove(copy)
                    throw error
                }
            }
        }
        return PickedDocument(path: folder.absolutePath + [0x2F] + name)
    }

    private func move(
        _ source: PickerRequest.Source, _ folder: PickerFolder, _ name: [UInt8]
    ) async throws -> PickedDocument {
        guard let old = try location(of: source), old.domain == folder.domain else {
            return try await bring(source, folder, name, leavesReference: true)
        }
        // The document stays the same one: with its identifier, its versions, and whoever has it
        // open.
        let new = folder.child(name)
        let target = try data.absolutePath(of: new, in: folder.domain)
        let former = old.absolutePath
        if target == former { throw PromiseError(.local, "it is there already", exitStatus: 1) }
        let client = try data.client(of: folder.domain)
        let named = try self.place(named: source)
        let from = MountPlace(former, on: old.mount)
        let to = try data.place(of: folder.path, in: folder.domain)
        try await coordinated(folder.domain, [.writing(old.path, .forMoving)]) {
            try await FileWork.run {
                if let named { try named.requireDocumentOrFolder() }
                let opened = try OpenedFolder(from.parent)
                try opened.rename(from.name, to: name, in: try OpenedFolder(to))
            }
        }
        let reference = try await client.addReference(to: new, at: old.path)
        let place = PercentCoding.decode(reference.pathBytes[...]).map {
            Array($0.drop { $0 == 0x2F })
        }
        return PickedDocument(
            path: target,
            reference: try place.map { try data.absolutePath(of: $0, in: folder.domain) })
    }

    /// Where a source is on a mount; nil elsewhere. That of a launch is where its name says.
    private func location(of source: PickerRequest.Source) throws(PromiseError) -> Location? {
        let table = try MountTable.current()
        guard let launch else { return try? Location.of(source.path, in: table) }
        guard let found = Location.ofResolved(source.path, in: table), found.domain == launch.domain
        else {
            throw PromiseError(
                .local, "\(FileWork.shown(source.path)) is not in the domain of the application",
                exitStatus: 5)
        }
        return found
    }

    /// Of a launch alone: a person may mean what a link leads to, but not by an application's word.
    private func place(named source: PickerRequest.Source) throws(PromiseError) -> MountPlace? {
        guard launch != nil, let found = try location(of: source) else { return nil }
        return MountPlace(found.absolutePath, on: found.mount)
    }

    /// One state of a source that is on a mount itself.
    private func reading<Value: Sendable>(
        _ source: PickerRequest.Source, _ body: @Sendable () async throws -> Value
    ) async throws -> Value {
        guard let place = try location(of: source), (try? data.mount(of: place.domain)) != nil
        else { return try await body() }
        return try await coordinated(place.domain, [.reading(place.path)]) { try await body() }
    }

    /// Copies a file into a domain, whole or not at all.
    private func bring(
        _ source: PickerRequest.Source, _ folder: PickerFolder, _ name: [UInt8],
        leavesReference: Bool
    ) async throws -> PickedDocument {
        let path = folder.child(name)
        let target = try data.absolutePath(of: path, in: folder.domain)
        let place = try data.place(of: folder.path, in: folder.domain)
        // Once: an application may make a link of the folder's name at any moment.
        let opened = try await FileWork.run {
            let opened = try OpenedFolder(place)
            guard opened.kind(name) == nil else { throw taken(name) }
            return opened
        }
        let named = try self.place(named: source)
        let (copied, copy) = try await reading(source) {
            try await FileWork.run {
                // Looked at now: a moment ago it may have been no link.
                let document = try FileWork.openDocument(source.path, at: named)
                let copied = try CopiedSource(source.path, openAs: document.number)
                return (copied, try opened.copy(document, of: source.path))
            }
        }
        try await FileWork.run {
            do {
                try opened.rename(copy, to: name)
            } catch {
                opened.remove(copy)
                throw error
            }
            opened.sync()
            // Only when the document is safely there does its place here become a link to it.
            if leavesReference { try copied.becomeLink(to: target) }
        }
        return PickedDocument(path: target, reference: leavesReference ? source.path : nil)
    }
}
