import PromiseCore
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

/// What the conformance suite says of links for strangers: nothing of a storage that has them right, and what is wrong of one
/// that has not.
@Suite struct LinkCheckTests {
    @Test func aStorageWithLinksPassesAndNoneIsLeft() async throws {
        let provider = KeepingProvider(linking: .right)
        let report = await provider.report(.sharingLinks)
        #expect(report.results.count == 8 && report.passedCount == 8, "\(report)")
        #expect(try await provider.sharingLinks?.list() == [])
        #expect(await provider.memory.names() == [])
    }

    @Test(arguments: [
        (LinkConduct.leadsElsewhere, "a link has an address of its own and says what it leads to"),
        (.hasNoAddress, "a link has an address of its own and says what it leads to"),
        (.hasOneAddress, "a link has an address of its own and says what it leads to"),
        (.neverEnds, "a link ends when it was to"),
        (.endsLate, "a link ends when it was to"),
        (.hasEnded, "a link ends when it was to"),
        (.takesWhatHasPassed, "a link until a date that has passed is refused"),
        (.refusesFoldersWithoutWord, "a link to a folder is made, or refused with a sentence"),
        (.neverMakesOneToAFolder, "a link to a folder is made, or refused with a sentence"),
        (.leadsToNothing, "a link to what is not there is not found"),
        (.waitsForWhatIsGone, "a link to what is not there is not found"),
        (.hidesWhatItMade, "a link is listed as it was made, and once"),
        (.listsTwice, "a link is listed as it was made, and once"),
        (.listsElsewhere, "a link is listed as it was made, and once"),
        (.listsTooMany, "a link is listed as it was made, and once"),
        (.listsWithoutEnd, "a link is listed as it was made, and once"),
        (.keepsWhatWasRevoked, "a link that is revoked is listed no longer, and others are"),
        (.revokesAll, "a link that is revoked is listed no longer, and others are"),
        (.revokesAnything, "a link that is revoked is listed no longer, and others are"),
        (.revokesAnything, "revoking what is no link is not found"),
        (.waitsForUnknownLinks, "revoking what is no link is not found"),
    ])
    func whatIsWrongWithLinksIsFound(conduct: LinkConduct, check: String) async throws {
        let report = await KeepingProvider(linking: conduct).report(.sharingLinks)
        #expect(report.failures.contains { $0.name == check }, "\(report)")
    }

    /// As a bucket, whose links are signed here. What it cannot do is told, and what it can is checked.
    @Test func whatAStorageCannotDoWithLinksIsLeftOut() async throws {
        let report = await KeepingProvider(linking: .knowsNone).report(.sharingLinks)
        #expect(report.failures.isEmpty && report.passedCount == 4, "\(report)")
        let reasons = Set(report.skipped.map(\.reason))
        #expect(reasons == ["links are kept nowhere", "its links end by themselves only"], "\(report)")
    }

    @Test func aStorageWithoutLinksIsNotAskedForAny() async throws {
        let root = ItemReference(identifier: MemoryProvider.rootIdentifier, path: [])
        let report = await ConformanceSuite(provider: MemoryProvider(), folder: root).run(needing: .sharingLinks)
        #expect(report.skipped.count == 8 && report.skipped.allSatisfy { $0.reason == "not declared: sharing-links" })
    }
}

/// What a storage does with links.
enum LinkConduct: Sendable {
    case right
    /// Of what it has made, which has no identifier either.
    case knowsNone
    case leadsElsewhere, hasNoAddress, hasOneAddress, neverEnds, endsLate, hasEnded, takesWhatHasPassed
    case refusesFoldersWithoutWord, neverMakesOneToAFolder, leadsToNothing, waitsForWhatIsGone
    case hidesWhatItMade, listsTwice, listsElsewhere, listsTooMany, listsWithoutEnd
    case keepsWhatWasRevoked, revokesAll, revokesAnything, waitsForUnknownLinks
}

/// The links of a storage in memory.
final class MemoryLinks: SharingLinks {
    private let memory: MemoryProvider
    private let conduct: LinkConduct
    private let kept = Mutex<(links: [SharingLink], count: Int)>(([], 0))

    init(_ memory: MemoryProvider, _ conduct: LinkConduct) { (self.memory, self.conduct) = (memory, conduct) }

    func make(to reference: ItemReference, kind: NodeKind, until end: Timestamp?) async throws(ProviderError) -> SharingLink {
        let now = SystemClock().now()
        if conduct != .takesWhatHasPassed, let end, end <= now { throw ProviderError(.refused, "that date has passed") }
        if kind == .folder, conduct == .refusesFoldersWithoutWord { throw ProviderError(.refused, "") }
        if kind == .folder, conduct == .neverMakesOneToAFolder { throw ProviderError(.retry, "the storage is busy") }
        if conduct == .waitsForWhatIsGone, try await isGone(reference) { throw ProviderError(.retry, "the storage is busy") }
        if ![.leadsToNothing, .knowsNone].contains(conduct) { _ = try await memory.item(for: reference) }
        let number = kept.withLock { kept in
            kept.count += 1
            return kept.count
        }
        var link = SharingLink(
            identifier: "\(number)", address: "https://example.com/\(number)", path: reference.path, end: end)
        switch conduct {
        case .knowsNone: link.identifier = nil
        case .leadsElsewhere: link.path = Array(reference.path.dropLast())
        case .hasNoAddress: link.address = "javascript:alert(1)"
        case .hasOneAddress: link.address = "https://example.com/"
        case .neverEnds: link.end = nil
        case .endsLate: link.end = end?.advanced(by: .seconds(1))
        case .hasEnded: link.end = now.advanced(by: .seconds(-1))
        default: break
        }
        if conduct != .hidesWhatItMade { kept.withLock { [link] in $0.links.append(link) } }
        return link
    }

    private func isGone(_ reference: ItemReference) async throws(ProviderError) -> Bool {
        do throws(ProviderError) {
            _ = try await memory.item(for: reference)
            return false
        } catch where error.code == .notFound {
            return true
        }
    }

    private func changed(_ link: SharingLink, _ change: (inout SharingLink) -> Void) -> SharingLink {
        var link = link
        change(&link)
        return link
    }

    func list() async throws(ProviderError) -> [SharingLink] {
        if conduct == .knowsNone { throw ProviderError(.refused, "links are kept nowhere") }
        let links = kept.withLock { $0.links }
        switch conduct {
        case .listsTwice: return links + links
        case .listsElsewhere: return links.map { changed($0) { $0.path = [] } }
        case .listsWithoutEnd: return links.map { changed($0) { $0.end = nil } }
        case .listsTooMany:
            return links + (0...10_000).map { number in
                SharingLink(identifier: "x\(number)", address: "https://example.com/\(number)", path: nil, end: nil)
            }
        default: return links
        }
    }

    func revoke(_ identifier: String) async throws(ProviderError) {
        if conduct == .knowsNone { throw ProviderError(.refused, "links end by themselves") }
        let isKnown = kept.withLock { $0.links.contains { $0.identifier == identifier } }
        if !isKnown, conduct == .revokesAnything { return }
        guard isKnown else {
            throw ProviderError(conduct == .waitsForUnknownLinks ? .retry : .notFound, "there is no such link")
        }
        if conduct == .keepsWhatWasRevoked { return }
        kept.withLock { kept in
            kept.links.removeAll { $0.identifier == identifier || conduct == .revokesAll }
        }
    }
}
