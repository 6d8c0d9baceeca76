import Glibc
import PromiseAccess
import PromiseContent
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseKeyValue
import PromiseProvider
import PromiseSync
import PromiseSystem

/// Checks what applications keep: values, containers and references, here and at the provider; and what
/// items have besides their content, where they were moved to, their pictures at the provider, and what a
/// storage says of itself.
struct RecordVerification {
    let index: Index
    /// Nil: it is not asked.
    let provider: (any Provider)?
    let shelf: RecordShelf
    let files: ValueFiles
    let attributes: ValueFiles
    let moves: ValueFiles
    let pictures: ThumbnailStore
    let containers: ContainerFile
    let transfers: [UInt8]
    /// Of a domain that is mounted: what is in memory is right, and is changed by one thread.
    let inMemory: InMemory?
    let isRepairing: Bool

    struct InMemory {
        let values: Values
        let containers: Containers
        let attributes: AttributeTravel
        let moves: MoveNotes
    }

    init(
        stateFolder: [UInt8], index: Index, provider: (any Provider)?, inMemory: InMemory?, isRepairing: Bool
    ) {
        (self.index, self.provider, self.inMemory, self.isRepairing) = (index, provider, inMemory, isRepairing)
        shelf = RecordShelf(stateFolder: stateFolder)
        files = ValueFiles(folder: stateFolder + Array("/values".utf8))
        attributes = ValueFiles(folder: stateFolder + Array("/attributes".utf8))
        moves = ValueFiles(folder: stateFolder + Array("/moves".utf8))
        pictures = ThumbnailStore(folder: stateFolder + Array("/thumbnails".utf8))
        containers = ContainerFile(path: stateFolder + Array("/containers.json".utf8))
        transfers = stateFolder + Array("/\(TransferHistory.fileName)".utf8)
    }

    func run() async throws(Failure) -> RecordFindings {
        var found = RecordFindings()
        if let inMemory {
            found.add(try await inMemory.values.check(isRepairing: isRepairing, shelf))
            found.add(try await inMemory.attributes.check(isRepairing: isRepairing, shelf))
            found.add(try await inMemory.moves.check(isRepairing: isRepairing, shelf))
            found.add(try await inMemory.containers.check(isRepairing: isRepairing, shelf))
        } else {
            found.add(files.check(.values, known: [:], isRepairing: isRepairing, shelf))
            found.add(attributes.check(.attributes, known: [:], isRepairing: isRepairing, shelf))
            found.add(moves.check(.moves, known: [:], isRepairing: isRepairing, shelf))
            found.add(containers.check(known: nil, isRepairing: isRepairing, shelf))
        }
        found.add(checkTransfers())
        found.add(try checkReferences())
        if let objects = provider?.privateObjects {
            found.add(try await checkObjects(objects))
            found.add(try await checkStorage(objects))
            found.add(try await checkPictures(objects))
        }
        if isRepairing, !found.repaired.isEmpty, let inMemory {
            await inMemory.values.exchangeAll()
            await inMemory.containers.exchangeAll(isThorough: true)
            await inMemory.attributes.look()
            await inMemory.moves.look()
        }
        return found
    }

    /// Only numbers for people, of which those that can be read are used.
    private func checkTransfers() -> RecordFindings {
        var found = RecordFindings()
        guard let bytes = readSmallFile(transfers, countMax: TransferHistory.byteCountMax),
            !TransferCounts.isWhole(String(decoding: bytes, as: UTF8.self))
        else { return found }
        found.note("the history of transfers in '\(escapedForDisplay(transfers))' is damaged", isRepairing: isRepairing) {
            () throws(Failure) in
            let place = try shelf.setAside(transfers, as: TransferHistory.fileName)
            return "it is written again with the next transfer, and what was there is kept as '\(place)'"
        }
        return found
    }

    // MARK: References

    /// Links that say of themselves that they are references, and are none.
    private func checkReferences() throws(Failure) -> RecordFindings {
        var found = RecordFindings()
        var waiting: [NodeID] = [.root]
        while let folder = waiting.popLast() {
            let damaged: [(entry: Entry, node: Node)] = try index.read { transaction throws(Failure) in
                var damaged: [(entry: Entry, node: Node)] = []
                for entry in try transaction.children(of: folder) {
                    guard let node = try transaction.node(entry.node) else { continue }
                    if node.kind == .folder { waiting.append(node.id) }
                    if ReferenceRecord.isDamaged(node.target) { damaged.append((entry, node)) }
                }
                return damaged
            }
            for (entry, node) in damaged { try mend(entry, node, &found) }
        }
        return found
    }

    private func mend(_ entry: Entry, _ node: Node, _ found: inout RecordFindings) throws(Failure) {
        let (path, agreed): ([FileName], [UInt8]?) = try index.read { transaction throws(Failure) in
            let agreed = try entry.identifier.flatMap { id throws(Failure) in try transaction.synced(id)?.item.target }
            return (try transaction.path(of: node.id) ?? [entry.name], agreed)
        }
        let problem = "the reference '\(path.map(\.display).joined(separator: "/"))' is damaged"
        guard let agreed, ReferenceRecord(target: agreed) != nil else {
            return found.problems.append(problem + ": remove it, and add it again with 'promisefs reference add'")
        }
        found.note(problem, isRepairing: isRepairing) { () throws(Failure) in
            try index.write { transaction throws(Failure) in
                guard var current = try transaction.node(node.id), current.target == node.target else { return }
                current.target = agreed
                current.size = UInt64(agreed.count)
                try transaction.update(current)
            }
            return "what the provider has takes its place"
        }
    }

    // MARK: At the provider

    private func checkObjects(_ objects: any PrivateObjects) async throws(Failure) -> RecordFindings {
        var found = RecordFindings()
        for kind in [PrivateName.Kind.values, .containers, .attributes, .moves] {
            do throws(ProviderError) {
                let names = try await objects.list(kind).sorted { $0.name < $1.name }
                for name in names where name.name.hasSuffix(".json") {
                    guard let object = try await read(name, objects, &found) else { continue }
                    guard !isUsable(object.bytes, name) else { continue }
                    let problem = "\(kind.record(of: application(name))) at the provider, \(name), cannot be used"
                    try await mend(object, name, problem, by: ours(name), objects, &found)
                }
                noteMissing(kind, Set(names.map(\.name)), &found)
            } catch {
                throw error.failure
            }
        }
        return found
    }

    private func application(_ name: PrivateName) -> Key { Key(String(name.name.dropLast(5))) }

    /// What a later version wrote is its own affair.
    private func isUsable(_ bytes: [UInt8], _ name: PrivateName) -> Bool {
        do throws(RecordTrouble) {
            let json = JSONReader.read(bytes)
            if name.kind != .containers {
                _ = try ValueRecord(json, of: application(name))
            } else {
                _ = try ContainerRecord(json, of: application(name))
            }
            return true
        } catch {
            if case .newer = error { return true }
            return false
        }
    }

    private func ours(_ name: PrivateName) -> [UInt8]? {
        let key = application(name)
        if let files = files(of: name.kind) { return (try? files.read(key))?.record.json.encoded }
        return (try? containers.read())?[key]?.record.json.encoded
    }

    private func files(of kind: PrivateName.Kind) -> ValueFiles? {
        switch kind {
        case .values: files
        case .attributes: attributes
        case .moves: moves
        case .containers, .storage, .pictures, .checks: nil
        }
    }

    /// Nil when there is none, and for what is too large to be one.
    func read(
        _ name: PrivateName, _ objects: any PrivateObjects, _ found: inout RecordFindings
    ) async throws(ProviderError) -> PrivateObject? {
        do throws(ProviderError) {
            return try await objects.read(name)
        } catch {
            guard error.code == .refused else { throw error }
            try await takeAway(name, error.message, objects, &found)
            return nil
        }
    }

    /// `ours` takes its place; with nil it is removed. It is kept here.
    func mend(
        _ object: PrivateObject, _ name: PrivateName, _ problem: String, by ours: [UInt8]?,
        _ objects: any PrivateObjects, _ found: inout RecordFindings
    ) async throws(ProviderError) {
        guard isRepairing else { return found.problems.append(problem) }
        let place: String
        do throws(Failure) {
            place = try shelf.keep(object.bytes, as: "provider-\(name.kind.rawValue)-\(name.name)")
        } catch {
            return found.problems.append(problem + ", and cannot be kept: \(error.message)")
        }
        do throws(ProviderError) {
            if let ours {
                _ = try await objects.write(ours, to: name, base: object.version)
                found.repaired.append(problem + "; what is here takes its place; that is kept as '\(place)'")
            } else {
                try await objects.delete(name, base: object.version)
                found.repaired.append(problem + "; it was removed there, and is kept as '\(place)'")
            }
        } catch {
            guard error.code == .conflict else { throw error }
            found.problems.append(problem + ", and somebody else writes it just now: try again")
        }
    }

    /// Somebody removed them behind the back of every machine; each sends what it has.
    private func noteMissing(_ kind: PrivateName.Kind, _ names: Set<String>, _ found: inout RecordFindings) {
        guard let files = files(of: kind) else { return }
        for application in files.applications().sorted() where !names.contains(application.text + ".json") {
            guard let store = try? files.read(application), store.isSent, !store.record.entries.isEmpty else { continue }
            found.note("\(kind.record(of: application)) are missing at the provider", isRepairing: isRepairing) {
                () throws(Failure) in "they will be sent"
            }
        }
    }
}

extension ReferenceRecord {
    /// It says that it is one, of a schema that is known, and cannot be used.
    static func isDamaged(_ target: [UInt8]?) -> Bool {
        guard let target, target.starts(with: mark), ReferenceRecord(target: target) == nil else { return false }
        let json = JSONReader.read(Array(target.dropFirst(mark.count)))
        guard let schema = json?["schema"]?.integer(Int.self) else { return true }
        return schema <= ReferenceRecord.schemaElsewhere
    }
}

extension ValueFiles {
    /// `known`: what is in memory, and is as it was written.
    func check(
        _ kind: PrivateName.Kind, known: [Key: ValueStore], isRepairing: Bool, _ shelf: RecordShelf
    ) -> RecordFindings {
        var found = RecordFindings()
        let present = Set(applications())
        for application in present.union(known.filter { $0.value != ValueStore.empty(like: $0.value) }.keys).sorted() {
            let (shown, what) = (escapedForDisplay(path(application)), kind.record(of: application))
            if !present.contains(application), let store = known[application] {
                found.note("\(what) are missing: there is no '\(shown)'", isRepairing: isRepairing) {
                    () throws(Failure) in
                    try write(store)
                    return "they were written again"
                }
                continue
            }
            do throws(Failure) {
                _ = try read(application)
            } catch {
                // A newer schema is no damage; a disk that cannot be read is nothing that can be mended here.
                guard isDamaged(application) else {
                    found.problems.append(error.message)
                    continue
                }
                found.note("\(what) in '\(shown)' are damaged", isRepairing: isRepairing) {
                    () throws(Failure) in
                    let place = try shelf.setAside(path(application), as: "\(kind.rawValue)-\(application).json")
                    if let store = known[application] { try write(store) }
                    return known[application] == nil
                        ? "those that the provider has take their place, and they are kept as '\(place)'"
                        : "they were written again, and what was there is kept as '\(place)'"
                }
            }
        }
        return found
    }
}

extension ValueFiles {
    func isDamaged(_ application: Key) -> Bool {
        guard let bytes = readSmallFile(path(application), countMax: ValueFiles.byteCountMax) else { return false }
        do throws(RecordTrouble) {
            _ = try ValueStore(JSONReader.read(bytes), of: application)
            return false
        } catch {
            return error == .damaged
        }
    }
}

extension ValueStore {
    /// Nothing was set in it, so that it needs no file.
    static func empty(like store: ValueStore) -> ValueStore {
        ValueStore(application: store.record.application, machine: store.machine)
    }
}

extension ContainerFile {
    /// `known`: what is in memory, and is as it was written; nil: nobody has read it.
    func check(known: [Key: KnownContainer]?, isRepairing: Bool, _ shelf: RecordShelf) -> RecordFindings {
        var found = RecordFindings()
        let shown = escapedForDisplay(path)
        do throws(Failure) {
            let read = try read()
            if let known, known != read {
                found.note("'\(shown)' does not say what was written to it", isRepairing: isRepairing) {
                    () throws(Failure) in
                    try write(known)
                    return "it was written again"
                }
            }
            return found
        } catch {
            guard isDamaged else {
                found.problems.append(error.message)
                return found
            }
        }
        let (usable, damaged) = salvage()
        let problem =
            damaged.isEmpty
            ? "the records of containers in '\(shown)' are damaged"
            : "the records of containers in '\(shown)' are damaged, of \(damaged.map(\.text).joined(separator: ", "))"
        found.note(problem, isRepairing: isRepairing) { () throws(Failure) in
            let place = try shelf.setAside(path, as: "containers.json")
            if let known {
                try write(known)
                return "they were written again, and what was there is kept as '\(place)'"
            }
            if !usable.isEmpty { try write(usable) }
            return "those that the provider has take their place, and they are kept as '\(place)'"
        }
        return found
    }

    private var isDamaged: Bool {
        guard let bytes = readSmallFile(path, countMax: ContainerFile.byteCountMax) else { return false }
        let schema = JSONReader.read(bytes)?["schema"]?.integer(Int.self)
        return schema.map { $0 <= ContainerFile.schema } ?? true
    }

    /// Those that can be used, and whose cannot.
    private func salvage() -> (usable: [Key: KnownContainer], damaged: [Key]) {
        guard let bytes = readSmallFile(path, countMax: ContainerFile.byteCountMax),
            let fields = JSONReader.read(bytes)?["containers"]?.fields
        else { return ([:], []) }
        var usable: [Key: KnownContainer] = [:]
        for (application, container) in fields {
            usable[application] = try? KnownContainer(container, of: application)
        }
        return (usable, fields.keys.filter { usable[$0] == nil }.sorted())
    }
}

extension DomainStatus {
    /// What applications keep: why it is not exchanged, and how much of it waits.
    mutating func countRecords(_ values: Values, _ services: DocumentServices) {
        limitations += values.troubles + services.troubles
        movedTo = services.moveWatch.provider
        unsentRecords = values.unsentCount + services.containers.unsentCount + services.attributes.unsentCount
        localAttributes = services.attributes.stayingItemCount
    }
}
