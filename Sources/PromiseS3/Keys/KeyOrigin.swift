import Foundation
import PromiseCore
import PromiseHTTP
package import PromiseProvider

/// A service that gives temporary access keys, as the variables of the AWS SDKs name it. They are asked for what no fixed key is
/// given for, in the order of those SDKs.
/// <https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html>
package enum KeyOrigin: Sendable, Hashable {
    /// STS, which trusts whoever signed the token in a file: Kubernetes, say.
    case webIdentity(server: String, tokenFile: [UInt8], role: String, session: String)
    /// Of the container that this runs in.
    case container(server: String, target: String, token: ContainerToken?)
    /// Of the machine that this runs on (IMDSv2).
    case instance(server: String)

    package enum ContainerToken: Sendable, Hashable {
        /// Read anew each time, as it changes.
        case file([UInt8])
        case given(Secret)
    }

    /// Of ECS, and of EKS, whose connections do not leave the machine.
    private static let containerHosts = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"]

    /// Nil when the variables forbid all. Throws `.permanent` with a sentence on a variable that cannot be meant.
    package static func find(
        for location: S3Location, containerToken: Secret?, environment: (String) -> String?
    ) throws(ProviderError) -> KeyOrigin? {
        if let origin = try webIdentity(location, environment) { return origin }
        if let origin = try container(containerToken, environment) { return origin }
        if environment("AWS_EC2_METADATA_DISABLED")?.lowercased() == "true" { return nil }
        let isNew = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE")?.lowercased() == "ipv6"
        let usual = isNew ? "http://[fd00:ec2::254]" : "http://169.254.169.254"
        let variable = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
        return .instance(server: try base(environment(variable) ?? usual, variable))
    }

    private static func webIdentity(
        _ location: S3Location, _ environment: (String) -> String?
    ) throws(ProviderError) -> KeyOrigin? {
        guard let file = environment("AWS_WEB_IDENTITY_TOKEN_FILE") else { return nil }
        guard let role = environment("AWS_ROLE_ARN") else {
            throw ProviderError(.permanent, "AWS_WEB_IDENTITY_TOKEN_FILE is set, but not the role for it: set AWS_ROLE_ARN")
        }
        let usual = location.region.map { "https://sts.\($0).amazonaws.com" } ?? "https://sts.amazonaws.com"
        let variable = environment("AWS_ENDPOINT_URL_STS") == nil ? "AWS_ENDPOINT_URL" : "AWS_ENDPOINT_URL_STS"
        return .webIdentity(
            server: try base(environment(variable) ?? usual, variable), tokenFile: Array(file.utf8), role: role,
            session: environment("AWS_ROLE_SESSION_NAME") ?? "promisefs")
    }

    private static func container(
        _ given: Secret?, _ environment: (String) -> String?
    ) throws(ProviderError) -> KeyOrigin? {
        let token =
            environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE").map { ContainerToken.file(Array($0.utf8)) }
            ?? given.map { ContainerToken.given($0) }
        if let path = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            guard path.hasPrefix("/"), let url = URLComponents(string: "http://169.254.170.2" + path) else {
                throw ProviderError(.permanent, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is no path that begins with '/'")
            }
            return .container(server: "http://169.254.170.2", target: target(url), token: token)
        }
        let variable = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
        guard let text = environment(variable) else { return nil }
        let url = try address(text, variable)
        // The token, and the keys that come for it, are not sent over a network that others can listen to.
        guard url.scheme == "https" || isOfThisMachine(url.host ?? "") else {
            throw ProviderError(
                .permanent,
                "\(variable) is plain http to '\(url.host ?? "")': that is for addresses of this machine and its "
                    + "container's only; write https")
        }
        return .container(server: S3Location.server(of: url), target: target(url), token: token)
    }

    private static func isOfThisMachine(_ host: String) -> Bool {
        LocalHost.isLoopback(host) || containerHosts.contains(LocalHost.bare(host))
    }

    private static func address(_ text: String, _ variable: String) throws(ProviderError) -> URLComponents {
        // Shown without what may be secret in it.
        guard let url = URLComponents(string: text), let scheme = url.scheme, ["http", "https"].contains(scheme),
            let host = url.host, !host.isEmpty, url.user == nil, url.password == nil, url.fragment == nil
        else { throw ProviderError(.permanent, "\(variable) is no http:// or https:// address") }
        return url
    }

    /// Without a slash at the end.
    private static func base(_ text: String, _ variable: String) throws(ProviderError) -> String {
        let url = try address(text, variable)
        guard url.query == nil, url.path.isEmpty || url.path == "/" else {
            throw ProviderError(.permanent, "\(variable) has a path: write scheme, host and port only")
        }
        return S3Location.server(of: url)
    }

    private static func target(_ url: URLComponents) -> String {
        let path = url.percentEncodedPath.isEmpty ? "/" : url.percentEncodedPath
        return path + (url.percentEncodedQuery.map { "?\($0)" } ?? "")
    }

    /// Scheme, host and port.
    var server: String {
        switch self {
        case .webIdentity(let server, _, _, _), .container(let server, _, _), .instance(let server): server
        }
    }

    /// For messages.
    var shown: String {
        switch self {
        case .webIdentity: "\(server) (for AWS_ROLE_ARN)"
        case .container: "\(server) (for this container)"
        case .instance: "\(server) (for this machine)"
        }
    }
}
