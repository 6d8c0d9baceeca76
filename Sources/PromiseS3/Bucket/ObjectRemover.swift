import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider

/// Deletes an object only while it has the tag that is known, as far as the server lets that be:
/// `If-Match` of DELETE, or a hollow object put in its place on that condition, or a look right
/// before. <https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObject.html>
struct ObjectRemover: Sendable {
    let bucket: S3Bucket
    let hollows: HollowObjects

    /// True when it is gone; false when something else is there. `target`: where it has been copied
    /// to.
    func remove(
        _ key: [UInt8], of tag: String, copiedTo target: [UInt8]? = nil, _ what: String
    ) async throws(ProviderError) -> Bool {
        let (traits, client) = (bucket.traits, bucket.client)
        var request = S3Request(.DELETE, key)
        if traits.deletesByHollows {
            let mark = target.map { HollowObject.moved(to: $0) } ?? HollowObject.deleted
            let reply = try await hollows.put(key, .version(ContentVersion(tag)), mark)
            // Servers disagree about what it is to replace something that is gone.
            if [404, 409, 412].contains(reply.status) {
                if let target, try await hollows.endRemoval(key, copiedTo: target, what) != nil {
                    return true
                }
                return try await bucket.status(ofKey: key, what) == nil
            }
            guard reply.isSuccess else { throw client.refusal(reply).error(what) }
        } else if traits.deletionMatches {
            request.headers.add(name: "If-Match", value: traits.tagText(tag))
            // Of what was copied another object has the content, whatever is removed.
            if target != nil { request.isRepeatable = true } else { request.isRepeatableIfRefused = true }
        } else if let found = try await bucket.status(ofKey: key, what), found.tag != tag {
            return false
        }
        let reply = try await client.exchange(request)
        // Of two attempts the first may have succeeded.
        if reply.status == 412 || reply.status == 409 {
            return try await bucket.status(ofKey: key, what) == nil
        }
        guard reply.isSuccess || reply.status == 404 else {
            throw client.refusal(reply).error(what)
        }
        bucket.details.forget(key)
        return true
    }

    /// After a move whose source may not be deleted: its copy makes way, or the item would be at
    /// both places. Nothing is done unless the source is there as it was: the copy may be all there
    /// is, as where a hollow object has the place of the source. `tag`: of the source.
    func takeBack(
        _ copy: [UInt8], of copyTag: String, copiedFrom source: [UInt8], _ tag: String,
        _ what: String
    ) async {
        guard let there = try? await bucket.anyStatus(ofKey: source, what), there.tag == tag,
            !HollowObject.isOne(there)
        else { return }
        _ = try? await remove(copy, of: copyTag, what)
    }

    /// Without a look. False when that did not succeed, for whatever reason, or the server honours
    /// no condition for it.
    func removeAtOnce(_ key: [UInt8], of tag: String) async throws(ProviderError) -> Bool {
        let traits = bucket.traits
        var request = S3Request(.DELETE, key)
        if traits.deletionMatches {
            request.headers.add(name: "If-Match", value: traits.tagText(tag))
            request.isRepeatableIfRefused = true
        } else {
            guard traits.deletesByHollows,
                try await hollows.put(key, .version(ContentVersion(tag)), HollowObject.deleted)
                    .isSuccess
            else { return false }
        }
        guard try await bucket.client.exchange(request).isSuccess else { return false }
        bucket.details.forget(key)
        return true
    }
}
