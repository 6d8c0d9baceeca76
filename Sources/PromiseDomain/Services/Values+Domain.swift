import Logging
import PromiseCore
import PromiseProvider
import PromiseSync

extension Values {
    /// Of a domain whose root is this.
    convenience init(
        _ folder: [UInt8], _ root: ItemIdentifier, _ provider: any Provider, _ engine: SyncEngine,
        _ configuration: DomainConfiguration, _ audit: AuditLog, _ logger: Logger
    ) {
        let needs = Needs(
            account: root.rawValue, objects: { provider.privateObjects },
            isOnline: { [engine] in engine.connectionFailure == nil },
            pollInterval: configuration.pollInterval,
            deadline: configuration.requestDeadline, isReadOnly: configuration.isReadOnly)
        self.init(folder: folder, needs: needs, audit: audit, logger: logger)
    }
}
