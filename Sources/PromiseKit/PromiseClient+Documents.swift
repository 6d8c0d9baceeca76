import NIOCore
public import PromiseWire

// What an application keeps in a domain besides values.

extension PromiseClient {
    /// The containers that may be seen, and whether the domain can be used now; that waits for
    /// nobody.
    public func containers() async throws(PromiseError) -> ContainersDocument {
        try await reply("GET", "containers", deadline: .minutes(1))
    }

    /// An application's own folder: that which it has on any machine, or a new one. `name` is what
    /// people call it.
    public func addContainer(
        for application: String, name: String? = nil, isPublic: Bool? = nil
    ) async throws(PromiseError) -> ContainerDocument {
        let request = ContainerRequest(application: application, name: name, isPublic: isPublic)
        return try await reply("POST", "containers", request, deadline: .minutes(1))
    }

    /// The folder stays, and is an ordinary one. Returns what it was.
    @discardableResult
    public func removeContainer(
        of application: String
    ) async throws(PromiseError) -> ContainerDocument {
        let query = PercentCoding.encode(Array(application.utf8)).replacingSlashes()
        return try await reply("DELETE", "containers?application=\(query)", deadline: .minutes(1))
    }
}
