import Logging
import PromiseCore
import PromiseKeyValue
import PromiseProvider
import PromiseSync

extension Values {
    /// Of a domain whose root is this.
    convenience init(
        _ folder: [UInt8], _ root: ItemIdentifier, _ provider: any Provider, _ engine: SyncEngine,
        _ configuration: DomainConfiguration, _ audit: AuditLog, _ logger: Logger
    ) {
        let account = AccountName(root, configuration)
        var needs = Needs(account, provider, engine, configuration)
        needs.isShared = account.sharesObjects
        needs.limits = ValueLimits(
            totalByteCount: configuration.valueByteCount, valueByteCount: configuration.valueByteCount,
            keyCount: configuration.valueCount)
        self.init(folder: folder, needs: needs, audit: audit, logger: logger)
    }
}

extension Values.Needs {
    fileprivate init(
        _ account: AccountName, _ provider: any Provider, _ engine: SyncEngine, _ configuration: DomainConfiguration
    ) {
        self.init(
            account: account.text, objects: { provider.privateObjects },
            isOnline: { engine.connectionFailure == nil }, pollInterval: configuration.pollInterval,
            deadline: configuration.requestDeadline, isReadOnly: configuration.isReadOnly)
    }

    /// Of what PromiseFS keeps for itself, as values of no application.
    init(
        _ tree: DomainTree, _ kind: PrivateName.Kind, _ limits: ValueLimits, _ configuration: DomainConfiguration
    ) {
        self.init(AccountName(tree.account, configuration), tree.provider, tree.engine, configuration)
        (self.kind, self.limits) = (kind, limits)
    }
}
