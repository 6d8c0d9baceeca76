import Foundation
import PromiseCore
import PromiseHTTP
package import PromiseProvider

/// The part of a bucket that a mount shows, and the server it is on: `s3://BUCKET/PREFIX?endpoint=URL&region=REGION`.
package struct S3Location: Hashable, Sendable {
    package let bucket: String
    /// Bytes of the keys' beginning: nothing, or something that ends with a slash.
    let prefix: [UInt8]
    /// `https://host` or with a port; no path.
    package let endpoint: String
    /// As it was named; nil: the usual one, or the one that the server says.
    let region: String?
    /// The bucket is a part of the host's name and not of the path.
    package let isVirtualHost: Bool
    /// Requests are not signed, whatever credentials there are.
    package let isAnonymous: Bool
    /// The server is on this machine.
    package let isLoopback: Bool
    private let isAmazon: Bool

    package static let form = "write s3://BUCKET/PREFIX?endpoint=URL&region=REGION"
    private static let usualRegion = "us-east-1"

    /// Endpoint and region are also taken from `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, `AWS_REGION` and
    /// `AWS_DEFAULT_REGION` in `environment`. Throws `.permanent` with a sentence on what names no bucket.
    package init(parsing name: String, environment: (String) -> String? = { _ in nil }) throws(ProviderError) {
        guard let url = URLComponents(string: name), url.scheme == "s3", let bucket = url.host, !bucket.isEmpty else {
            throw S3Location.problem(name, "names no bucket")
        }
        guard url.password == nil, url.user == nil else {
            throw S3Location.problem(
                "s3://…@\(bucket)",
                "names a user: put the access key into the credentials file ($XDG_CONFIG_HOME/promisefs/credentials, mode 0600) "
                    + "or into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
        }
        guard url.port == nil, url.fragment == nil, S3Location.isBucketName(bucket) else {
            throw S3Location.problem(name, "names no bucket that there can be")
        }
        guard let prefix = PercentEncoding.decoded(url.percentEncodedPath), String(validating: prefix, as: UTF8.self) != nil,
            S3Location.areNames(prefix.dropFirst())
        else { throw S3Location.problem(name, "has a prefix that is no path in UTF-8") }
        var options: [String: String] = [:]
        for item in url.queryItems ?? [] { options[item.name] = item.value ?? "" }
        let unknown = options.keys.filter { !["endpoint", "region", "style", "anonymous"].contains($0) }.sorted()
        guard unknown.isEmpty else {
            throw S3Location.problem(name, "has '\(unknown[0])' in it; known are endpoint, region, style and anonymous")
        }
        let region = options["region"] ?? environment("AWS_REGION") ?? environment("AWS_DEFAULT_REGION")
        let endpoint = options["endpoint"] ?? environment("AWS_ENDPOINT_URL_S3") ?? environment("AWS_ENDPOINT_URL")
        let style = options["style"] ?? (endpoint == nil && !bucket.contains(".") ? "virtual" : "path")
        guard ["path", "virtual"].contains(style) else {
            throw S3Location.problem(name, "has another style than 'path' and 'virtual'")
        }
        self.bucket = bucket
        let inside = prefix.dropFirst().split(separator: UInt8(ascii: "/"))
        self.prefix = inside.flatMap { Array($0) + [UInt8(ascii: "/")] }
        self.region = region
        isAmazon = endpoint == nil
        self.endpoint = try S3Location.origin(endpoint ?? "https://s3.\(region ?? S3Location.usualRegion).amazonaws.com", name)
        isLoopback = LocalHost.isLoopback(URLComponents(string: self.endpoint)?.host ?? "")
        isVirtualHost = style == "virtual"
        isAnonymous = options["anonymous"] == "true"
    }

    private static func problem(_ name: String, _ what: String) -> ProviderError {
        // An access key may be in a query that was meant well.
        ProviderError(.permanent, "'\(name.prefix { $0 != "?" })' \(what): \(form)")
    }

    /// Buckets made long ago may have capitals and underscores.
    private static func isBucketName(_ name: String) -> Bool {
        (3...255).contains(name.utf8.count)
            && name.utf8.allSatisfy {
                switch $0 {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    private static func areNames(_ path: ArraySlice<UInt8>) -> Bool {
        path.split(separator: UInt8(ascii: "/")).allSatisfy { FileName($0) != nil }
    }

    /// Scheme, host and port of an endpoint, and nothing else.
    private static func origin(_ text: String, _ name: String) throws(ProviderError) -> String {
        guard let url = URLComponents(string: text), let scheme = url.scheme, ["http", "https"].contains(scheme),
            let host = url.host, !host.isEmpty, url.user == nil, url.password == nil, url.query == nil, url.fragment == nil,
            url.path.isEmpty || url.path == "/"
        else { throw problem(name, "has an endpoint that is no http:// or https:// address of a server") }
        return server(of: url)
    }

    /// Scheme, host and port, where there is a host.
    static func server(of url: URLComponents) -> String {
        let host = url.host ?? ""
        let shown = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
        return "\(url.scheme ?? "")://\(shown)" + (url.port.map { ":\($0)" } ?? "")
    }

    /// In one form for one place; without secrets.
    package var name: String {
        var items: [String] = []
        if !isAmazon { items.append("endpoint=\(endpoint)") }
        if let region { items.append("region=\(region)") }
        if isVirtualHost != (isAmazon && !bucket.contains(".")) { items.append("style=\(isVirtualHost ? "virtual" : "path")") }
        if isAnonymous { items.append("anonymous=true") }
        return "s3://\(bucket)/" + S3Location.encoded(prefix) + (items.isEmpty ? "" : "?" + items.joined(separator: "&"))
    }

    /// The last folder of the prefix, or the bucket.
    package var lastName: String {
        prefix.split(separator: UInt8(ascii: "/")).last.map { String(decoding: $0, as: UTF8.self) } ?? bucket
    }

    /// What entries of the credentials file may call the server, best first.
    package var hostNames: [String] {
        let authority = endpoint.drop { $0 != "/" }.drop { $0 == "/" }
        let host = authority.hasPrefix("[") ? authority : authority.prefix { $0 != ":" }
        return [bucket, String(authority), String(host)].reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    package var signingRegion: String { region ?? S3Location.usualRegion }

    package var isEncrypted: Bool { endpoint.hasPrefix("https:") }

    /// Signatures cover a hash of what is sent, so that nobody on the way can change it. The SDKs of AWS do so over plain http,
    /// and leave it out over https for content that has a checksum of its own (`Content-MD5` or `x-amz-checksum-…`): TLS
    /// protects the bytes, and to hash them all costs as much as to send them. On this machine there is nobody on the way.
    package var signsPayload: Bool { !isEncrypted && !isLoopback }

    /// Scheme and host of a request.
    package var origin: String {
        guard isVirtualHost, let start = endpoint.range(of: "://")?.upperBound else { return endpoint }
        return "\(endpoint[..<start])\(bucket).\(endpoint[start...])"
    }

    /// The header `Host`.
    var host: String {
        let slash = UInt8(ascii: "/")
        return String(Substring(origin.utf8.drop { $0 != slash }.drop { $0 == slash }))
    }

    /// Of a URL: of the bucket itself, or of a key in it.
    package func path(_ key: [UInt8]?) -> String {
        let base = isVirtualHost ? "" : "/\(bucket)"
        guard let key else { return base.isEmpty ? "/" : base }
        return base + "/" + S3Location.encoded(key)
    }

    static func encoded(_ key: [UInt8]) -> String {
        key.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { PercentEncoding.encoded(Array($0)) }
            .joined(separator: "/")
    }
}
