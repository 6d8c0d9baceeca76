import NIOCore
import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// A small object that stands for nothing: nobody who looks at it takes it for a file.
///
/// Servers that honour a condition on PUT and none on copies and deletions would copy over what
/// others made since it was looked at, and delete what they wrote. So a hollow object is put there
/// first, on the condition: where a copy is to come, and in the place of what is to be deleted.
/// What a daemon that died has left is replaced by whoever needs the key.
///
/// Each has bytes of its own: without any it had the version of every empty file, and who has the
/// version of the empty file that was there would write over it, and lose that.
enum HollowObject {
    static let header = ObjectDetails.prefix + "promisefs-hollow"
    /// No copy and no deletion takes longer to follow.
    static let lifetime = Duration.seconds(60)
    /// Those of older versions have none, and neither has one in the place of a folder's marker: a
    /// marker with content would be somebody's object.
    private static let byteCount = 16
    /// In the place of what is deleted.
    static let deleted = "deleted"

    /// `mark`: for what it stands there.
    static func headers(_ mark: String) -> HTTPHeaders {
        [header: mark, "Content-Type": ObjectWriter.ordinaryType]
    }

    /// Of a copy of this key (FNV-1a). Whoever goes on with a move that broke off knows its own by
    /// it.
    static func mark(_ source: [UInt8]) -> String {
        let hash = source.reduce(UInt64(0xcbf2_9ce4_8422_2325)) {
            ($0 ^ UInt64($1)) &* 0x100_0000_01b3
        }
        return String(hash, radix: 16)
    }

    /// In the place of what has been copied to this key, and is deleted next.
    static func moved(to target: [UInt8]) -> String { "moved-" + mark(target) }

    static func content(_ key: [UInt8]) -> ByteBuffer? {
        guard key.last != KeyNames.slash else { return nil }
        let digits = String(UInt64.random(in: 0 ... .max), radix: 16)
        let zeros = String(repeating: "0", count: byteCount - digits.utf8.count)
        return ByteBuffer(string: zeros + digits)
    }

    /// Of what is no larger or smaller than one; only a look tells.
    static func mayBeOne(size: UInt64) -> Bool { size == 0 || size == byteCount }

    static func isOne(_ status: ObjectStatus) -> Bool {
        mayBeOne(size: status.size) && status.kept.contains(name: header)
    }

    static func mark(_ status: ObjectStatus) -> String? { status.kept.first(name: header) }
}

extension S3Traits {
    private var keepsHollows: Bool { refusesTaken && matchForm != nil && keepsMetadata }
    var copiesIntoHollows: Bool { !copyRefusesTaken && keepsHollows }
    var deletesByHollows: Bool { !deletionMatches && keepsHollows }
}

/// The hollow objects of a bucket: put, found and removed again.
struct HollowObjects: Sendable {
    /// Two of their lives.
    private static let lookCountMax = 35

    let bucket: S3Bucket

    var areUsed: Bool { bucket.traits.copiesIntoHollows || bucket.traits.deletesByHollows }

    /// In the place of what is expected there.
    func put(
        _ key: [UInt8], _ expectation: Expectation, _ mark: String
    ) async throws(ProviderError) -> HTTPReply {
        var request = S3Request(.PUT, key, [], HollowObject.headers(mark))
        request.body = HollowObject.content(key)
        request.headers.add(contentsOf: bucket.conditions(expectation))
        return try await bucket.client.exchange(request)
    }

    /// Whoever left it will not come back to it. How old it is the server tells, by its own clock:
    /// this machine's may be fast. Where it tells no time only waiting does.
    func isForsaken(_ status: ObjectStatus) -> Bool {
        guard HollowObject.isOne(status), let made = status.lastModified, let now = status.date
        else { return false }
        return made.advanced(by: HollowObject.lifetime) < now
    }

    /// Who has a key that is wanted.
    enum Holder {
        case nobody
        /// Whoever left it will not come back to it, or is who asks.
        case hollow(ObjectStatus)
        case something
    }

    /// What a hollow object of somebody else stands for comes within moments, and never when its
    /// daemon has died: waits for either. `mark`: of one's own.
    func outlast(
        _ key: [UInt8], mark: String? = nil, _ what: String
    ) async throws(ProviderError) -> Holder {
        guard areUsed else { return .something }
        // By the server's clock it may be young for ever.
        var (since, last) = (bucket.clock.uptime(), Timestamp?.none)
        var pause = Duration.milliseconds(250)
        for _ in 0..<HollowObjects.lookCountMax {
            guard let there = try await bucket.anyStatus(ofKey: key, what) else { return .nobody }
            guard HollowObject.isOne(there) else { return .something }
            if let last, last != there.lastModified { since = bucket.clock.uptime() }
            last = there.lastModified
            let isOurs = mark != nil && HollowObject.mark(there) == mark
            let isOld = bucket.clock.uptime() - since >= HollowObject.lifetime
            if isOurs || isOld || isForsaken(there) { return .hollow(there) }
            do {
                try await Task.sleep(for: pause)
            } catch {
                throw ProviderError(.cancelled, "\(what): the call was cancelled")
            }
            pause = min(pause * 2, .seconds(4))
        }
        throw ProviderError(.retry, "\(what): others change it again and again")
    }

    /// False when there is none, or another one by now. Throws where the server refuses: it is
    /// there still.
    ///
    /// Whoever waited for the key as long may put a content in its place at this very moment. So it
    /// is deleted on a condition, or where deletions honour none a fresh one takes its place first,
    /// for which others wait.
    func remove(_ key: [UInt8], _ what: String) async throws(ProviderError) -> Bool {
        guard areUsed, let found = try await bucket.anyStatus(ofKey: key, what),
            HollowObject.isOne(found)
        else { return false }
        var request = S3Request(.DELETE, key)
        if bucket.traits.deletionMatches {
            request.headers.add(name: "If-Match", value: bucket.traits.tagText(found.tag))
        } else {
            // By the mark that was there who goes on with that move would take it for its own.
            let reply = try await put(key, .version(found.version), HollowObject.deleted)
            if [404, 409, 412].contains(reply.status) { return false }
            guard reply.isSuccess else { throw bucket.client.refusal(reply).error(what) }
        }
        let reply = try await bucket.client.exchange(request)
        if reply.status == 409 || reply.status == 412 { return false }
        guard reply.isSuccess || reply.status == 404 else {
            throw bucket.client.refusal(reply).error(what)
        }
        return true
    }

    /// An attempt that broke off may have put a hollow object in the place of what it had copied:
    /// that is deleted then. Nil: there is none. False: it is another one's, who deletes it.
    func endRemoval(
        _ key: [UInt8], copiedTo target: [UInt8], _ what: String
    ) async throws(ProviderError) -> Bool? {
        guard bucket.traits.deletesByHollows,
            let found = try await bucket.anyStatus(ofKey: key, what),
            HollowObject.isOne(found)
        else { return nil }
        let isOurs = HollowObject.mark(found) == HollowObject.moved(to: target)
        guard isOurs || isForsaken(found) else { return false }
        return try await remove(key, what)
    }
}
