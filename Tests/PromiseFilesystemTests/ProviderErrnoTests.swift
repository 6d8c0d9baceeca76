import Foundation
import PromiseCore
import PromiseProvider
import Testing

/// What providers are told that programs get is what they get.
@Suite struct ProviderErrnoTests {
    private static let codes: [ProviderError.Code] = [
        .retry, .retryAfter(.seconds(1)), .offline, .away, .authenticate, .refused, .conflict, .notFound, .stale,
        .sourceChanged, .anchorExpired, .outOfSpace, .localDiskFull, .corrupted, .cancelled, .permanent,
    ]

    /// As the document calls it. A new one belongs into `codes`, too.
    private static func name(_ code: ProviderError.Code) -> String {
        switch code {
        case .retry: ".retry"
        case .retryAfter: ".retryAfter(d)"
        case .offline: ".offline"
        case .away: ".away"
        case .authenticate: ".authenticate"
        case .refused: ".refused"
        case .conflict: ".conflict"
        case .notFound: ".notFound"
        case .stale: ".stale"
        case .sourceChanged: ".sourceChanged"
        case .anchorExpired: ".anchorExpired"
        case .outOfSpace: ".outOfSpace"
        case .localDiskFull: ".localDiskFull"
        case .corrupted: ".corrupted"
        case .cancelled: ".cancelled"
        case .permanent: ".permanent"
        }
    }

    /// By `ErrnoTests` these are the numbers, too.
    private static let names: [Failure.Code: String] = [
        .timedOut: "ETIMEDOUT", .offline: "ENETDOWN", .refused: "EACCES", .stale: "ESTALE", .quotaExceeded: "EDQUOT",
        .storeFull: "ENOSPC", .corrupted: "EIO", .inputOutput: "EIO", .interrupted: "EINTR",
    ]

    private static func document(_ name: String) throws -> [String] {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let url = tests.deletingLastPathComponent().appendingPathComponent("docs/" + name)
        return try String(contentsOf: url, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    private static func quoted(_ text: some StringProtocol) -> [String] {
        text.split(separator: "`", omittingEmptySubsequences: false).enumerated().filter { $0.offset % 2 == 1 }
            .map { String($0.element) }
    }

    /// One code was in no row of the table, and of a full provider two documents said two things.
    @Test func eachErrorOfAProviderHasTheErrnoOfTheDocument() throws {
        let lines = try Self.document("PROVIDERS.md").drop { $0 != "## Errors" }.dropFirst()
        var told: [String: String] = [:]
        for line in lines.prefix(while: { !$0.hasPrefix("## ") }) where line.hasPrefix("| `.") {
            let columns = line.split(separator: "|")
            let errno = Self.quoted(try #require(columns.last)).first { $0.hasPrefix("E") } ?? "none"
            for code in Self.quoted(try #require(columns.first)) { told[code] = errno }
        }
        for code in Self.codes {
            // Nobody waits for an upload that begins anew, nor for a feed.
            let waits = code != .sourceChanged && code != .anchorExpired
            let errno = waits ? Self.names[ProviderError(code, "").failure.code] : "none"
            #expect(told[Self.name(code)] == errno, "\(code)")
        }
        #expect(told.count == Self.codes.count)
    }

    /// Each of them is in the table of what programs get, too.
    @Test func eachErrnoIsInTheTableForPrograms() throws {
        let lines = try Self.document("SEMANTICS.md").drop { $0 != "## errno" }
        let rows = lines.prefix { !$0.hasPrefix("Others (") }.filter { $0.hasPrefix("| `E") }
        let told = Set(rows.compactMap { Self.quoted($0).first })
        #expect(told.isSuperset(of: Set(Self.names.values)))
    }
}
