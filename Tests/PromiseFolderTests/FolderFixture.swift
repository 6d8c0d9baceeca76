import Glibc
import Logging
import PromiseCore
import PromiseFolder
import PromiseProvider
import PromiseSystem
import PromiseTestSupport

/// A folder provider on a temporary folder, and what tests ask of it.
struct FolderFixture: Sendable {
    let folder: TemporaryFolder
    let provider: FolderProvider

    init(_ name: String, beforeTakingEffect: (@Sendable () -> Void)? = nil) async throws {
        self.init(folder: try TemporaryFolder(name), beforeTakingEffect: beforeTakingEffect)
        try await provider.connect()
    }

    /// Another provider on the folder, as another daemon would have.
    init(
        folder: TemporaryFolder, knownPlaces: KnownPlaces = KnownPlaces(),
        beforeTakingEffect: (@Sendable () -> Void)? = nil, afterTakingEffect: TakenEffect? = nil
    ) {
        self.folder = folder
        provider = FolderProvider(
            path: folder.path, knownPlaces: knownPlaces, logger: quietLogger,
            beforeTakingEffect: beforeTakingEffect, afterTakingEffect: afterTakingEffect)
    }

    func root() async throws -> ItemReference {
        ItemReference(identifier: try await provider.root().identifier, path: [])
    }

    func list(_ reference: ItemReference? = nil) async throws -> [Item] {
        let parent = if let reference { reference } else { try await root() }
        var items: [Item] = []
        var page: PageToken?
        repeat {
            let answer = try await provider.enumerateItems(in: parent, page: page)
            items += answer.items
            page = answer.next
        } while page != nil
        return items
    }

    /// By listing each folder on the way, as an engine does.
    func item(_ path: String) async throws -> (item: Item, reference: ItemReference) {
        var reference = try await root()
        var item = try await provider.root()
        for step in path.split(separator: "/") {
            guard let found = try await list(reference).first(where: { $0.name == FileName(Array(step.utf8)) }) else {
                throw ProviderError(.notFound, "'\(path)' is not listed")
            }
            item = found
            reference = ItemReference(identifier: item.identifier, path: reference.path + [item.name])
        }
        return (item, reference)
    }

    func fetch(_ item: Item, _ reference: ItemReference) async throws -> [UInt8] {
        let sink = MemorySink()
        try await provider.fetchContents(of: reference, version: item.version, range: nil, into: sink)
        return sink.bytes
    }

    func replace(_ path: String, _ text: String) async throws -> Item {
        let (item, reference) = try await item(path)
        return try await provider.modify(
            reference, changes: ItemChanges(), contents: try MemorySource(Array(text.utf8)), baseVersion: item.version)
    }
}

let quietLogger: Logger = {
    var logger = Logger(label: "test")
    logger.logLevel = .critical
    return logger
}()

func name(_ text: String) -> FileName { FileName(trusted: Array(text.utf8)) }

func rename(_ folder: TemporaryFolder, _ from: String, _ to: String) throws {
    try PromiseSystem.rename(folder.path(from), to: folder.path(to), label: "test.rename")
}

/// The code of the provider error that `body` throws; nil when it throws none.
func code(_ body: () async throws -> Void) async -> ProviderError.Code? {
    do {
        try await body()
        return nil
    } catch {
        return (error as? ProviderError)?.code
    }
}

/// Runs a program and waits for it.
func run(_ arguments: String...) throws {
    var pointers: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    var process = pid_t()
    let result = posix_spawnp(&process, arguments[0], nil, nil, &pointers, environ)
    guard result == 0 else { throw SystemError(errno: result, label: "test.run") }
    var status: CInt = 0
    _ = try call("test.wait") { waitpid(process, &status, 0) }
    guard status == 0 else { throw SystemError(errno: ECHILD, label: "test.run") }
}
