import ArgumentParser
import PromiseCore
import PromiseKit
import PromiseWire

struct LimitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "limit",
        abstract: "Say how much of the disk and of the line a domain may use.",
        discussion: """
            A SIZE is 500M or 2GiB, a RATE the same in a second. What is given stays over restarts and \
            the next mount; without options it is shown. A smaller cache gives up content that the \
            provider has, at once. Rates are those of WebDAV, S3 and rclone, all requests together, from the \
            next request on.

            Example:
              promisefs limit documents --cache 20G --upload 500k
              promisefs limit documents --upload none
            """)

    @Argument(help: ArgumentHelp("The name of a domain, or a path on its mount.", valueName: "domain"))
    var domain: PathArgument
    @Option(
        help: ArgumentHelp(
            "What is kept here at most: a size, 'none', or 'default' as it was mounted.", valueName: "size"))
    var cache: String?
    @Option(
        help: ArgumentHelp("What is sent in a second at most: a size of 8 KiB or more, or 'none'.", valueName: "rate"))
    var upload: String?
    @Option(
        help: ArgumentHelp(
            "What is fetched in a second at most: a size of 64 KiB or more, or 'none'.", valueName: "rate"))
    var download: String?
    @OptionGroup var output: OutputOptions

    private struct Document: Encodable {
        var domain: String
        /// Bytes, and bytes a second; missing: as much as there is.
        var cache: UInt64?
        var upload: UInt64?
        var download: UInt64?
    }

    func validate() throws {
        _ = try request()
    }

    func run() async throws {
        for (mount, _) in try await scope(domain, namesDomain: true) {
            let client = try PromiseClient(mount: mount)
            let change = try request()
            let status = change == LimitsRequest() ? try await client.status() : try await client.setLimits(change)
            show(
                Document(
                    domain: mount.domain, cache: status.cacheLimit, upload: status.uploadLimit,
                    download: status.downloadLimit))
        }
    }

    private func show(_ document: Document) {
        if output.json { return Output.json(document) }
        let size = document.cache.map { "at most \(ByteSize.text($0))" } ?? "as much as there is room for"
        func rate(_ bytes: UInt64?) -> String {
            bytes.map { "at most \(ByteSize.text($0)) a second" } ?? "as fast as it goes"
        }
        Output.text(
            "\(document.domain)\n"
                + table([
                    ["  cache", size], ["  upload", rate(document.upload)], ["  download", rate(document.download)],
                ]))
    }

    /// Throws on what is no size.
    private func request() throws -> LimitsRequest {
        LimitsRequest(
            cache: try text(cache, "--cache", besides: LimitsRequest.asConfigured),
            upload: try text(upload, "--upload"), download: try text(download, "--download"))
    }

    private func text(_ value: String?, _ option: String, besides word: String? = nil) throws -> String? {
        guard let value else { return nil }
        if value == LimitsRequest.none || value == word { return value }
        let size = value.hasSuffix("/s") ? String(value.dropLast(2)) : value
        guard let bytes = Quantity.bytes(size) else {
            throw ValidationError("\(option) is a size as 500k or 2GiB, or 'none'; '\(value)' is not")
        }
        return "\(bytes)"
    }
}
