package import NIOHTTP1
package import PromiseCore
import PromiseHTTP

/// What an answer to HEAD, GET or PUT says of an object.
package struct ObjectStatus: Sendable {
    /// Without quotes.
    package var tag: String
    package var size: UInt64
    /// In whole seconds: listings and replies differ in what is behind them. Nil: it is not told.
    package var lastModified: Timestamp?
    /// What time it was at the server when it said so; nil: it is not told.
    package var date: Timestamp?
    /// The server tells tag and size.
    package var isWhole: Bool
    package var details: ObjectDetails
    /// What is kept when an object is written again with other metadata.
    package var kept: HTTPHeaders

    package init(_ headers: HTTPHeaders) {
        tag = EntityTag.opaque(headers.first(name: "ETag") ?? "")
        let told = headers.first(name: "Content-Length").flatMap { ItemSize.read($0) }
        size = told ?? 0
        isWhole = told != nil && !tag.isEmpty
        lastModified = headers.first(name: "Last-Modified").flatMap { HTTPDate.timestamp($0) }
        date = headers.first(name: "Date").flatMap { HTTPDate.timestamp($0) }
        details = ObjectDetails(headers)
        kept = [:]
        // In one order, as they are compared when an upload is gone on with.
        let sorted = headers.sorted { $0.name < $1.name }
        for (name, value) in sorted where ObjectStatus.isKept(name.lowercased()) { kept.add(name: name, value: value) }
    }

    /// As it is remembered, without what is kept with it.
    init(tag: String, size: UInt64, lastModified: Timestamp?, _ details: ObjectDetails) {
        (self.tag, self.size, self.lastModified) = (tag, size, lastModified)
        (isWhole, self.details, kept) = (true, details, [:])
    }

    private static func isKept(_ name: String) -> Bool {
        let own = ["mtime", "mode", "uid", "gid"].map { ObjectDetails.prefix + $0 }
        if name.hasPrefix(ObjectDetails.prefix) { return !own.contains(name) }
        return ["content-type", "cache-control", "content-disposition", "content-encoding", "content-language"].contains(name)
    }

    package var version: ContentVersion { ContentVersion(tag) }
}

/// Modes, owners and times as rclone and s3fs keep them in an object's metadata: `mtime` in seconds with a fraction, `mode` as
/// a decimal `st_mode` (stat(2)), `uid`, `gid`. A link is an object whose mode says so and whose content is the target.
/// <https://rclone.org/s3/#modification-times-and-hashes>, <https://github.com/s3fs-fuse/s3fs-fuse> (metaheader.cpp)
package struct ObjectDetails: Sendable, Hashable {
    static let prefix = "x-amz-meta-"

    /// The kinds of stat(2)'s `st_mode`.
    private enum Kind {
        static let mask: UInt32 = 0o170000
        static let file: UInt32 = 0o100000
        static let folder: UInt32 = 0o040000
        static let link: UInt32 = 0o120000
    }

    package var modificationTime: Timestamp?
    /// 0 to 0o7777.
    package var mode: UInt32?
    package var owner: UInt32?
    package var group: UInt32?
    package var isLink = false
    /// Of a link, once it has been fetched.
    package var target: [UInt8]?

    package init() {}

    package init(_ headers: HTTPHeaders) {
        func value(_ name: String) -> String? { headers.first(name: ObjectDetails.prefix + name) }
        modificationTime = value("mtime").flatMap { ObjectDetails.timestamp($0) }
        owner = value("uid").flatMap { UInt32($0) }
        group = value("gid").flatMap { UInt32($0) }
        if let status = value("mode").flatMap({ ObjectDetails.status($0) }) {
            mode = status & 0o7777
            isLink = status & Kind.mask == Kind.link
        }
    }

    package init(_ metadata: Metadata, target: [UInt8]? = nil) {
        modificationTime = metadata.modificationTime
        (mode, owner, group) = (metadata.mode, metadata.owner, metadata.group)
        self.target = target
        isLink = target != nil
    }

    /// What an object says nothing of is as the server has it.
    package func metadata(kind: NodeKind, lastModified: Timestamp, owner: UInt32, group: UInt32) -> Metadata {
        Metadata(
            mode: mode ?? (kind == .folder ? 0o755 : 0o644), owner: self.owner ?? owner, group: self.group ?? group,
            modificationTime: modificationTime ?? lastModified)
    }

    /// To be sent with an object that is written.
    package static func headers(_ metadata: Metadata, kind: NodeKind) -> HTTPHeaders {
        let type = kind == .folder ? Kind.folder : kind == .link ? Kind.link : Kind.file
        return [
            prefix + "mtime": text(metadata.modificationTime), prefix + "mode": "\(type | metadata.mode)",
            prefix + "uid": "\(metadata.owner)", prefix + "gid": "\(metadata.group)",
        ]
    }

    /// `1354040105.123456789`; without a fraction where there is none.
    package static func text(_ time: Timestamp) -> String {
        let rest = String(time.nanosecondPart)
        guard time.nanosecondPart > 0 else { return "\(time.seconds)" }
        // Seconds are rounded down; a time before 1970 is written as the number that it is.
        if time.seconds < 0 {
            let back = String(1_000_000_000 - time.nanosecondPart)
            return "-\(-(time.seconds + 1))." + String(repeating: "0", count: 9 - back.count) + back
        }
        return "\(time.seconds)." + String(repeating: "0", count: 9 - rest.count) + rest
    }

    package static func timestamp(_ text: String) -> Timestamp? {
        let isNegative = text.hasPrefix("-")
        let parts = text.drop { $0 == "-" }.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = parts.first.flatMap({ Int($0) }), whole >= 0, whole < 1 << 33 else { return nil }
        var nanoseconds = 0
        if parts.count == 2 {
            let digits = parts[1].prefix(9)
            guard digits.allSatisfy(\.isNumber), let value = Int(digits + String(repeating: "0", count: 9 - digits.count)) else {
                return nil
            }
            nanoseconds = value
        }
        let time = whole * 1_000_000_000 + nanoseconds
        return Timestamp(nanoseconds: Int64(isNegative ? -time : time))
    }

    /// Decimal as s3fs writes it; rclone, told to keep all metadata, writes octal digits.
    package static func status(_ text: String) -> UInt32? {
        let kinds = [Kind.file, Kind.folder, Kind.link]
        if let number = UInt32(text), number <= 0o177777, kinds.contains(number & Kind.mask) { return number }
        if let number = UInt32(text, radix: 8), number <= 0o177777, kinds.contains(number & Kind.mask) || number <= 0o7777 {
            return number
        }
        return nil
    }
}
