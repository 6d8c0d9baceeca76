import PromiseAccess
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseMigration
import PromiseProvider

/// The grants of a domain that goes on at another storage. They open what is called by their
/// identifiers, and there another item may be called so: they are written anew, with what the new
/// storage calls their items.
struct MigratedGrants {
    private let grants: [Grant]
    /// Nil when nothing is to be sealed.
    private let seal: GrantSeal?
    /// This machine's name.
    private let machine: String

    /// What does not verify gives no right, and stays as it is. Blocking.
    init(index path: [UInt8], key: StateKey) throws(Failure) {
        let index = try Index(path: path)
        defer { index.close() }
        grants = try GrantStore(index: index, key: key).load().grants.filter { $0.key.identifier != nil }
        seal = grants.isEmpty ? nil : GrantSeal(key: try key.read(makingIt: false))
        machine = grants.isEmpty ? "" : try DomainTree.machine(index)
    }

    /// `new`: nil of what the new storage does not have.
    func rows(
        for provider: any Provider, new: (ItemIdentifier) -> ItemIdentifier?
    ) throws(Failure) -> [GrantRow] {
        var rows: [GrantRow] = []
        for var grant in grants {
            guard let old = grant.key.identifier else { continue }
            let identifier = new(old) ?? ProviderChange.gone(old)
            let isOwnName = provider.capabilities.contains(.placeIdentifiers) && !identifier.isNumber
            (grant.key.identifier, grant.key.machine) = (identifier, isOwnName ? machine : nil)
            guard let sealed = seal?.seal(grant) else {
                throw Failure(.corrupted, "the key of the state folder has a wrong size")
            }
            rows.append(GrantRow(id: grant.id.rawValue, record: sealed.record, seal: sealed.seal))
        }
        return rows
    }
}

extension DomainMigration {
    func migratedGrants() throws(Failure) -> MigratedGrants {
        try MigratedGrants(index: file("index.sqlite"), key: StateKey(path: file(StateKey.fileName)))
    }

    /// What the new storage calls the items: `brought`, where the old identifiers were the storage's
    /// own, also those that this machine has not listed.
    static func names(
        _ renamings: [ProviderChange.Renaming], _ brought: [ItemIdentifier: MigratedItem]?
    ) -> (ItemIdentifier) -> ItemIdentifier? {
        let known = Dictionary(
            renamings.map { ($0.old, $0.new) }, uniquingKeysWith: { first, _ in first })
        return { known[$0] ?? brought?[$0]?.new }
    }
}
