import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem
import Synchronization

/// Tags that this process got for what it wrote a moment ago, and for which content.
///
/// Servers make tags of size and time, some of the inode, too, so two contents of one size that
/// arrive within one tick of the clock have one tag. When such files exchange their names nobody
/// sees that anything is new, and what is written on the base of the one replaces the other.
final class GivenTags: Sendable {
    private struct Given {
        var content: Int
        /// Uptime.
        var time: Duration
    }

    private struct State {
        var tags: [String: Given] = [:]
        var count = 0
        var isCoarse = false
    }

    /// No server's clock has longer ticks.
    private static let lifetime = Duration.seconds(5)
    /// Where a file's own time goes into its tag, that of another one of the time and size may come
    /// much later.
    private static let lifetimeWithTimes = Duration.seconds(3_600)
    private static let tagsMax = 16_384

    private let state = Mutex(State())

    /// A number for a content; equal contents have one, as far as they are in memory.
    func number(of payload: Payload, isLink: Bool) -> Int {
        switch payload {
        case .bytes(let bytes): number(of: bytes, isLink: isLink)
        case .source(let source) where source.size == 0: number(of: [UInt8](), isLink: isLink)
        case .source:
            state.withLock { state in
                state.count += 1
                return state.count
            }
        }
    }

    func number(of bytes: some Collection<UInt8>, isLink: Bool = false) -> Int {
        var hasher = Hasher()
        hasher.combine(isLink)
        // In one call, as all that is sent goes through here.
        let isHashed: Void? = bytes.withContiguousStorageIfAvailable {
            hasher.combine(bytes: UnsafeRawBufferPointer($0))
        }
        if isHashed == nil { for byte in bytes { hasher.combine(byte) } }
        return hasher.finalize()
    }

    /// False when another content was given the tag a moment ago.
    func takes(_ tag: String, for content: Int, at time: Duration, withTimes: Bool) -> Bool {
        let lifetime = withTimes ? GivenTags.lifetimeWithTimes : GivenTags.lifetime
        return state.withLock { state in
            if state.isCoarse { return true }
            if let given = state.tags[tag], given.content != content, time - given.time < lifetime {
                return false
            }
            if state.tags.count >= GivenTags.tagsMax {
                state.tags = state.tags.filter { time - $0.value.time < lifetime }
                if state.tags.count >= GivenTags.tagsMax { state.tags = [:] }
            }
            state.tags[tag] = Given(content: content, time: time)
            return true
        }
    }

    /// The server's clock stands still for so long that nobody waits for it with each file.
    func giveUp() { state.withLock { ($0.isCoarse, $0.tags) = (true, [:]) } }
}

/// Sends a content again until its tag is its own: neither the one of what it replaces nor of what
/// was just written elsewhere. Without its time, of which the server may have made the tag.
struct TagRenewal {
    /// They reach beyond a tick of a second.
    private static let pauses = [20, 40, 80, 160, 320, 640].map { Duration.milliseconds($0) }
    /// For what was written elsewhere nobody waits longer.
    private static let pausesElsewhere = 3

    private let resources: WebDAVResources
    private let givenTags: GivenTags
    private let expectation: Expectation
    private let content: Int

    init(
        _ resources: WebDAVResources, _ givenTags: GivenTags, of payload: Payload,
        over expectation: Expectation, isLink: Bool
    ) {
        (self.resources, self.givenTags, self.expectation) = (resources, givenTags, expectation)
        content = givenTags.number(of: payload, isLink: isLink)
    }

    /// `content`: its number.
    init(_ resources: WebDAVResources, _ givenTags: GivenTags, ofNew content: Int) {
        (self.resources, self.givenTags) = (resources, givenTags)
        (expectation, self.content) = (.nothing, content)
    }

    /// `send`: over what was written before.
    func run(
        _ written: inout ResourceStatus, at path: [FileName],
        _ send: (_ before: ResourceStatus) async throws(ProviderError) -> ResourceStatus
    ) async throws(ProviderError) {
        for (index, pause) in TagRenewal.pauses.enumerated() {
            let isOfBase = hasTagOfBase(written)
            guard isOfBase || !isItsOwn(written) else { return }
            if !isOfBase, index == TagRenewal.pausesElsewhere { return }
            let before = written
            try? await Task.sleep(for: pause)
            written = try await send(before)
            if index > 0, written.version == before.version { givenTags.giveUp() }
        }
        guard !hasTagOfBase(written) else {
            throw ProviderError(
                .retry,
                "\(resources.shown(path)) cannot be uploaded: "
                    + "the server does not tell it from what was there"
            )
        }
    }

    /// Where tags are made of the content, one tag is one content.
    private func hasTagOfBase(_ written: ResourceStatus) -> Bool {
        !resources.traits.tagsTellContent && expectation == .version(written.version)
    }

    func isItsOwn(_ written: ResourceStatus) -> Bool {
        let traits = resources.traits
        guard let tag = written.entityTag, traits.listsTags, !traits.tagsTellContent else {
            return true
        }
        return givenTags.takes(
            tag, for: content, at: resources.clock.uptime(), withTimes: traits.takesTimes == true)
    }
}
