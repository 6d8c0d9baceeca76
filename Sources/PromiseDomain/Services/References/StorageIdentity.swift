import PromiseAccess
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseKeyValue
import PromiseProvider
import PromiseSync
import Synchronization

/// What references in other domains call this domain's storage: a name that the storage keeps itself,
/// so that it is the same on every machine, whatever the domain is called there, and goes along when
/// the domain is moved to another storage. It is made when the first such reference is.
///
/// **Threads.** Any; `state` is a leaf.
final class StorageIdentity: Sendable {
    private struct State {
        var looking: Task<String?, Never>?
        /// When the provider may be asked again whether another machine has made one.
        var rest: ContinuousClock.Instant?
    }

    static let setting = "storage.identifier"
    private static let schema = 1
    private static let about = "what references in other storages call this one"
    static let place = PrivateName(.storage, "identity.json")!

    private let tree: DomainTree
    private let configuration: DomainConfiguration
    private let memory: ReferenceMemory?
    private let state = Mutex(State())

    init(tree: DomainTree, configuration: DomainConfiguration) {
        self.tree = tree
        self.configuration = configuration
        memory = tree.filesystem.linkTargets.memory
        memory?.storage = known
    }

    /// On this machine.
    var known: String? {
        if let known = memory?.storage { return known }
        let kept = try? tree.index.read { transaction throws(Failure) in
            try transaction.setting(StorageIdentity.setting)
        }
        return kept ?? nil
    }

    /// Nil while nobody has made one. Asks the provider, at most once each poll interval.
    func look() async -> String? {
        if let known { return known }
        let now = ContinuousClock.now
        let looking: Task<String?, Never>? = state.withLock { state in
            if let looking = state.looking { return looking }
            if let rest = state.rest, rest > now { return nil }
            state.rest = now + configuration.pollInterval
            let task = Task { [weak self] in
                let found = try? await self?.read()
                self?.state.withLock { $0.looking = nil }
                return found ?? nil
            }
            state.looking = task
            return task
        }
        return await looking?.value
    }

    /// The one that there is, or a new one.
    func make() async throws(Failure) -> String {
        if let known { return known }
        let objects = try await tree.asking { [tree] () throws(ProviderError) in
            tree.provider.privateObjects
        }
        guard let objects else {
            throw Failure(
                .notSupported,
                "the storage of '\(tree.domainName)' keeps nothing by which other machines would know it: "
                    + "only references in the domain itself can stand for its documents")
        }
        for _ in 0..<3 {
            if let found = try await read() { return found }
            if configuration.isReadOnly {
                throw Failure(.readOnly, "the domain is mounted read-only: its storage can be given no name")
            }
            let fresh = StorageIdentity.fresh()
            let bytes = StorageIdentity.record(of: fresh)
            do throws(ProviderError) {
                _ = try await withDeadline(configuration.requestDeadline, "the provider did not answer") {
                    () async throws(ProviderError) in
                    try await objects.write(bytes, to: StorageIdentity.place, base: nil)
                }
            } catch {
                // Another machine was faster.
                if error.code == .conflict { continue }
                throw error.failure
            }
            try remember(fresh)
            return fresh
        }
        throw Failure(.busy, "other machines write the name of the storage just now: try again")
    }

    private func read() async throws(Failure) -> String? {
        guard tree.engine.connectionFailure == nil, let objects = tree.provider.privateObjects else {
            return nil
        }
        let object: PrivateObject?
        do throws(ProviderError) {
            object = try await withDeadline(configuration.requestDeadline, "the provider did not answer") {
                () async throws(ProviderError) in try await objects.read(StorageIdentity.place)
            }
        } catch {
            throw error.failure
        }
        guard let object else { return nil }
        guard let found = StorageIdentity.identifier(in: object.bytes) else {
            throw Failure(
                .corrupted,
                "\(StorageIdentity.place) at the provider is damaged: remove it, and add the references from "
                    + "other domains again")
        }
        try remember(found)
        return found
    }

    /// What a storage keeps.
    static func record(of identifier: String) -> [UInt8] {
        JSON.map([
            "about": .string(about), "identifier": .string(identifier), "schema": .number(String(schema)),
        ]).encoded
    }

    /// Nil of what is damaged.
    static func identifier(in record: [UInt8]) -> String? {
        JSONReader.read(record)?["identifier"]?.text.flatMap { $0.isEmpty ? nil : $0 }
    }

    private func remember(_ identifier: String) throws(Failure) {
        try tree.index.write { transaction throws(Failure) in
            try transaction.setSetting(StorageIdentity.setting, identifier)
        }
        memory?.storage = identifier
    }

    /// Nobody has the same by chance.
    private static func fresh() -> String {
        (0..<2).map { _ in String(UInt64.random(in: 0 ... .max), radix: 36) }.joined()
    }
}
