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
        var needs = Needs(
            account: account.text, objects: { provider.privateObjects },
            isOnline: { [engine] in engine.connectionFailure == nil },
            pollInterval: configuration.pollInterval,
            deadline: configuration.requestDeadline, isReadOnly: configuration.isReadOnly)
        needs.isShared = account.sharesObjects
        needs.limits = ValueLimits(
            totalByteCount: configuration.valueByteCount, valueByteCount: configuration.valueByteCount,
            keyCount: configuration.valueCount)
        self.init(folder: folder, needs: needs, audit: audit, logger: logger)
    }
}
