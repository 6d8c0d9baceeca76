import PromiseCore
import PromiseSystem
import Synchronization

// Links for strangers: to what was asked for, no longer than was asked for, and known until they
// are revoked.

enum LinkChecks {
    static let all: [ConformanceCheck] = [
        check("a link has an address of its own and says what it leads to") { trial in
            let (one, other) = (try await trial.file("one"), try await trial.file("other"))
            let (first, second) = (try await trial.make(to: one), try await trial.make(to: other))
            for (link, file) in [(first, one), (second, other)] {
                try trial.requireAddress(link)
                try trial.context.require(
                    link.path == file.path, "a link that was made says that it leads elsewhere")
            }
            try trial.context.require(
                first.address != second.address, "links to two files have one address")
        },
        check("a link ends when it was to") { trial in
            let end = trial.now.advanced(by: LinkTrial.lasting)
            let link = try await trial.make(to: try await trial.file("file"), until: end)
            guard let told = link.end else {
                throw ConformanceFailure("a link that was to end does not say that it does")
            }
            try trial.context.require(told <= end, "a link lasts longer than it was to")
            try trial.context.require(told > trial.now, "a link that was to last has ended")
        },
        check("a link until a date that has passed is refused") { trial in
            let file = try await trial.file("file")
            // Whether it makes any that end.
            _ = try await trial.make(to: file)
            let past = trial.now.advanced(by: .seconds(-86_400))
            try await trial.context.expect(.refused, "a link until yesterday") {
                trial.note(try await trial.links.make(to: file, kind: .file, until: past))
            }
        },
        check("a link to a folder is made, or refused with a sentence") { trial in
            let made = try await trial.context.makeFolder("folder")
            let folder = trial.context.reference(made)
            do throws(ProviderError) {
                let link = try await trial.links.make(
                    to: folder, kind: .folder, until: trial.now.advanced(by: LinkTrial.lasting))
                trial.note(link)
            } catch {
                try trial.context.require(
                    error.code == .refused && !error.message.isEmpty,
                    "it must be refused with a sentence, not \(error.code): \(error.message)")
            }
        },
        check("a link to what is not there is not found") { trial in
            // What is signed here, and not known there, leads nowhere then.
            _ = try await trial.list()
            let gone = try await trial.file("gone")
            try await trial.context.provider.delete(gone, baseVersion: nil)
            try await trial.context.expect(.notFound, "a link to what is not there") {
                trial.note(
                    try await trial.links.make(
                        to: gone, kind: .file, until: trial.now.advanced(by: LinkTrial.lasting)))
            }
            try trial.context.require(
                try await trial.list().allSatisfy { $0.path != gone.path },
                "a link to what is not there is listed")
        },
        check("a link is listed as it was made, and once") { trial in
            _ = try await trial.list()
            var made: [SharingLink] = []
            for name in ["one", "other"] {
                made.append(try await trial.make(to: try await trial.file(name)))
            }
            let listed = try await trial.list()
            try trial.context.require(
                listed.count <= LinkTrial.countMax, "\(listed.count) links are listed")
            let names = listed.compactMap(\.identifier)
            try trial.context.require(
                Set(names).count == names.count, "two links have one identifier")
            for link in made {
                let found = listed.filter { $0.address == link.address }
                try trial.context.require(
                    found.count == 1, "a link that was made is listed \(found.count) times")
                try trial.context.require(
                    found[0].path == nil || found[0].path == link.path,
                    "a link is listed as one that leads elsewhere")
                try trial.context.require(
                    found[0].end == link.end && found[0].identifier == link.identifier,
                    "a link is listed with another end or identifier")
            }
        },
        check("a link that is revoked is listed no longer, and others are") { trial in
            _ = try await trial.list()
            let first = try await trial.make(to: try await trial.file("one"))
            let second = try await trial.make(to: try await trial.file("other"))
            let identifier = try await trial.revoke(first)
            let addresses = try await trial.list().map(\.address)
            try trial.context.require(
                !addresses.contains(first.address), "a link that was revoked is listed")
            try trial.context.require(
                addresses.contains(second.address), "another link is gone with the revoked one")
            try await trial.context.expect(.notFound, "revoking a link twice") {
                try await trial.links.revoke(identifier)
            }
        },
        check("revoking what is no link is not found") { trial in
            let first = try await trial.make(to: try await trial.file("one"))
            let second = try await trial.make(to: try await trial.file("other"))
            // Whether it revokes any.
            _ = try await trial.revoke(first)
            try await trial.context.expect(.notFound, "revoking what is no link") {
                try await trial.links.revoke("no-such-link")
            }
            // Nothing was revoked in its place.
            _ = try await trial.revoke(second)
        },
    ]

    /// Revokes the links that it has made afterwards.
    private static func check(
        _ sentence: String, _ body: @escaping @Sendable (LinkTrial) async throws -> Void
    ) -> ConformanceCheck {
        ConformanceCheck(sentence, needs: .sharingLinks) { context in
            guard let links = context.provider.sharingLinks else {
                throw ConformanceFailure("links are declared, and there are none")
            }
            let trial = LinkTrial(context, links)
            let outcome: Result<Void, any Error>
            do { outcome = .success(try await body(trial)) } catch { outcome = .failure(error) }
            await trial.revokeAll()
            try outcome.get()
        }
    }
}

/// The links of a storage, and which of them a check has made.
private final class LinkTrial: Sendable {
    /// More are not listed.
    static let countMax = 10_000
    /// What cannot be revoked is to end. Storages that count in days have this, too.
    static let lasting = Duration.seconds(2 * 86_400)

    let context: ConformanceContext
    let links: any SharingLinks
    let now = SystemClock().now()
    private let made = Mutex<[SharingLink]>([])

    init(_ context: ConformanceContext, _ links: any SharingLinks) {
        (self.context, self.links) = (context, links)
    }

    func file(_ name: String) async throws -> ItemReference {
        context.reference(try await context.makeFile(name, Array(name.utf8)))
    }

    /// To a file. What the storage refuses it cannot do.
    func make(to file: ItemReference, until end: Timestamp? = nil) async throws -> SharingLink {
        let end = end ?? now.advanced(by: LinkTrial.lasting)
        let link = try await lacking { () throws(ProviderError) in
            try await self.links.make(to: file, kind: .file, until: end)
        }
        note(link)
        return link
    }

    func note(_ link: SharingLink) { made.withLock { $0.append(link) } }

    func list() async throws -> [SharingLink] {
        try await lacking { () throws(ProviderError) in try await self.links.list() }
    }

    /// Returns what it was called.
    func revoke(_ link: SharingLink) async throws -> String {
        guard let identifier = link.identifier else {
            throw ConformanceLack("its links end by themselves only")
        }
        try await lacking { () throws(ProviderError) in try await self.links.revoke(identifier) }
        return identifier
    }

    private func lacking<Value>(
        _ call: () async throws(ProviderError) -> Value
    ) async throws -> Value {
        do throws(ProviderError) { return try await call() } catch where error.code == .refused {
            throw ConformanceLack(error.message)
        }
    }

    func requireAddress(_ link: SharingLink) throws {
        let address = link.address
        try context.require(
            ["https://", "http://"].contains { address.hasPrefix($0) }
                && address.utf8.allSatisfy { (0x21...0x7E).contains($0) },
            "a link has no address of the web")
    }

    func revokeAll() async {
        for identifier in made.withLock({ $0 }).compactMap(\.identifier) {
            try? await links.revoke(identifier)
        }
    }
}
