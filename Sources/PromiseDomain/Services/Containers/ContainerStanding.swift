package import PromiseAccess
package import PromiseCore
import PromiseKeyValue
import PromiseProvider

/// An application's own folder, as `container` shows it.
package struct ContainerStanding: Sendable {
    package var application: String
    package var name: String
    package var isPublic: Bool
    package var identifier: ItemIdentifier?
    /// Nil when the folder is not there.
    package var path: [FileName]?
    /// Why it is not.
    package var reason: String?
    /// Other machines can know of it.
    package var isSent: Bool
    package var hasIcon = false
}

/// Whether a domain can be used now, and whose it is.
package struct ContainerAvailability: Sendable, Hashable {
    package var domain: String
    package var provider: String
    package var account: String
    /// Why it cannot be used.
    package var message: String?

    package init(_ facts: (domain: String, provider: String, account: String, message: String?)) {
        (domain, provider, account, message) = facts
    }

    /// As an application is told: neither the address nor what servers say is its business.
    package func told(to principal: Principal) -> ContainerAvailability {
        if principal.isOwner { return self }
        var told = self
        told.provider = ApplicationSight.provider(provider)
        told.account = ApplicationSight.account(account)
        told.message = message.map { _ in "the storage cannot be reached" }
        return told
    }
}

extension Key {
    /// Of an application: its identifier, which is also the name of its private objects.
    static func application(_ identifier: String) throws(Failure) -> Key {
        guard PrivateName(.containers, identifier) != nil,
            identifier.utf8.count <= ValueFiles.nameByteCountMax
        else { throw Failure.noApplication(identifier) }
        return Key(identifier)
    }
}

/// Refuses what is no identifier of an application, for those who know nothing of keys.
package func requireApplication(_ identifier: String) throws(Failure) { _ = try Key.application(identifier) }

extension Failure {
    static func noApplication(_ text: String) -> Failure {
        Failure(
            .invalid,
            "'\(escapedForDisplay(text.utf8.prefix(80)))' is no identifier of an application: write letters, digits, '.', "
                + "'-' and '_', as com.example.editor")
    }
}
