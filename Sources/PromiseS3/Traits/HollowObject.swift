import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// An empty object that stands for nothing: nobody who looks at it takes it for a file.
///
/// Servers that honour a condition on PUT and none on copies and deletions would copy over what others made since it was
/// looked at, and delete what they wrote. So a hollow object is put there first, on the condition: where a copy is to
/// come, and in the place of what is to be deleted. What a daemon that died has left is replaced by whoever needs the key.
enum HollowObject {
    static let header = ObjectDetails.prefix + "promisefs-hollow"
    /// No copy and no deletion takes longer to follow.
    static let lifetime = Duration.seconds(60)

    /// `mark`: for what it stands there.
    static func headers(_ mark: String) -> HTTPHeaders { [header: mark, "Content-Type": S3Provider.ordinaryType] }

    /// Of a copy of this key (FNV-1a). Whoever goes on with a move that broke off knows its own by it.
    static func mark(_ source: [UInt8]) -> String {
        String(source.reduce(UInt64(0xcbf2_9ce4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }, radix: 16)
    }

    /// In the place of what has been copied to this key, and is deleted next.
    static func moved(to target: [UInt8]) -> String { "moved-" + mark(target) }

    static func isOne(_ status: ObjectStatus) -> Bool { status.size == 0 && status.kept.contains(name: header) }
}

extension S3Traits {
    private var keepsHollows: Bool { refusesTaken && matchForm != nil && keepsMetadata }
    var copiesIntoHollows: Bool { !copyRefusesTaken && keepsHollows }
    var deletesByHollows: Bool { !deletionMatches && keepsHollows }
}

extension S3Provider {
    /// Never over something else, as far as the server lets that be.
    func copyWhereNothingIs(
        _ source: [UInt8], _ found: ObjectStatus, to target: [UInt8], _ metadata: Metadata?, _ what: String
    ) async throws(ProviderError) -> String {
        // The end of a copy in parts has a condition of its own, which a hollow object would not meet.
        let isConditional = found.size > S3Provider.copyByteCountMax && traits.completionRefusesTaken
        guard traits.copiesIntoHollows, !isConditional else {
            return try await copy(source, found, to: target, metadata, what)
        }
        let mark = HollowObject.mark(source)
        let reply = try await putHollow(target, .nothing, mark)
        if !reply.isSuccess {
            guard reply.status == 412, let there = try await anyStatus(ofKey: target, what), HollowObject.isOne(there),
                isForsaken(there) || there.kept.first(name: HollowObject.header) == mark
            else { throw client.refusal(reply).error(what) }
        }
        do throws(ProviderError) {
            return try await copy(source, found, to: target, metadata, what)
        } catch {
            switch error.code {
            // It may have happened all the same: whoever ends the move looks.
            case .retry, .retryAfter, .offline, .authenticate, .cancelled: break
            default: _ = try? await removeHollow(target, what)
            }
            throw error
        }
    }

    /// True when it is gone; false when something else is there. Only of that tag, as far as the server lets that be.
    /// `target`: where it has been copied to.
    func remove(
        _ key: [UInt8], of tag: String, copiedTo target: [UInt8]? = nil, _ what: String
    ) async throws(ProviderError) -> Bool {
        var request = S3Request(.DELETE, key)
        if traits.deletesByHollows {
            let mark = target.map { HollowObject.moved(to: $0) } ?? "deleted"
            let reply = try await putHollow(key, .version(ContentVersion(tag)), mark)
            // Servers disagree about what it is to replace something that is gone.
            if [404, 409, 412].contains(reply.status) {
                if let target, try await endRemoval(key, copiedTo: target, what) != nil { return true }
                return try await status(ofKey: key, what) == nil
            }
            guard reply.isSuccess else { throw client.refusal(reply).error(what) }
        } else if traits.deletionMatches {
            request.headers.add(name: "If-Match", value: traits.tagText(tag))
            request.isRepeatable = true
        } else if let found = try await status(ofKey: key, what), found.tag != tag {
            return false
        }
        let reply = try await client.exchange(request)
        // Of two attempts the first may have succeeded.
        if reply.status == 412 || reply.status == 409 { return try await status(ofKey: key, what) == nil }
        guard reply.isSuccess || reply.status == 404 else { throw client.refusal(reply).error(what) }
        details.forget(key)
        return true
    }

    /// False when that did not succeed, for whatever reason, or the server honours no condition for it.
    func removeAtOnce(_ key: [UInt8], of tag: String) async throws(ProviderError) -> Bool {
        var request = S3Request(.DELETE, key)
        if traits.deletionMatches {
            request.headers.add(name: "If-Match", value: traits.tagText(tag))
            request.isRepeatable = true
        } else {
            guard traits.deletesByHollows,
                try await putHollow(key, .version(ContentVersion(tag)), "deleted").isSuccess
            else { return false }
        }
        guard try await client.exchange(request).isSuccess else { return false }
        details.forget(key)
        return true
    }

    /// An attempt that broke off may have put a hollow object in the place of what it had copied: that is deleted then.
    /// Nil: there is none. False: it is another one's, who deletes it.
    func endRemoval(
        _ key: [UInt8], copiedTo target: [UInt8], _ what: String
    ) async throws(ProviderError) -> Bool? {
        guard traits.deletesByHollows, let found = try await anyStatus(ofKey: key, what), HollowObject.isOne(found)
        else { return nil }
        let isOurs = found.kept.first(name: HollowObject.header) == HollowObject.moved(to: target)
        guard isOurs || isForsaken(found) else { return false }
        return try await removeHollow(key, what)
    }

    private func putHollow(
        _ key: [UInt8], _ expectation: Expectation, _ mark: String
    ) async throws(ProviderError) -> HTTPReply {
        var request = S3Request(.PUT, key, [], HollowObject.headers(mark))
        request.headers.add(contentsOf: conditions(expectation))
        return try await client.exchange(request)
    }

    /// What stands for nothing at a key, and is left by somebody who will not come back to it.
    func forsakenHollow(_ key: [UInt8], _ what: String) async throws(ProviderError) -> ObjectStatus? {
        guard traits.copiesIntoHollows || traits.deletesByHollows, let there = try await anyStatus(ofKey: key, what),
            isForsaken(there)
        else { return nil }
        return there
    }

    func isForsaken(_ status: ObjectStatus) -> Bool {
        HollowObject.isOne(status) && status.lastModified.advanced(by: HollowObject.lifetime) < clock.now()
    }

    /// False when there is none.
    func removeHollow(_ key: [UInt8], _ what: String) async throws(ProviderError) -> Bool {
        guard traits.copiesIntoHollows || traits.deletesByHollows, let found = try await anyStatus(ofKey: key, what),
            HollowObject.isOne(found)
        else { return false }
        _ = try await client.exchange(S3Request(.DELETE, key))
        return true
    }
}
