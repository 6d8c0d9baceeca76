/// Who makes a call. It is made once for each connection, of what the kernel says of its other end
/// and of the socket it came by; no process number and no name in a message makes one.
package enum Principal: Hashable, Sendable {
    /// Whoever reaches the domain's own socket: its user, or root. May act for any application.
    case owner(user: UInt32, process: Int32)
    /// The application whose socket it is: a socket is of one launch.
    case application(String, launch: LaunchID)

    /// Asks about what belongs to an application; nil: to none in particular.
    package func mayAct(for application: String?) -> Bool {
        switch self {
        case .owner: true
        case .application(let own, _): application.map { $0.utf8.elementsEqual(own.utf8) } ?? true
        }
    }

    package var isOwner: Bool { if case .owner = self { true } else { false } }

    /// For the log.
    package var text: String {
        switch self {
        case .owner(let user, let process): "owner user=\(user) process=\(process)"
        case .application(let identifier, let launch): "application \(identifier) launch=\(launch)"
        }
    }
}
