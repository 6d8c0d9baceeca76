import PromiseCore
import PromiseS3
import PromiseTestSupport
import Testing

/// Which folders hold something else is told by a listing of the whole bucket as by listing each.
@Suite struct FolderDigestTests {
    private typealias Bucket = [[UInt8]: S3Listing.Object]

    private func object(_ key: [UInt8], _ random: inout SeededGenerator) -> S3Listing.Object {
        S3Listing.Object(
            key: key, tag: "\(UInt64.random(in: 0...UInt64.max, using: &random))", size: UInt64.random(in: 0..<9, using: &random),
            lastModified: .zero)
    }

    private func key(_ random: inout SeededGenerator) -> [UInt8] {
        let depth = Int.random(in: 0...3, using: &random)
        let folders = (0..<depth).map { _ in ["a", "b", "c", "", "."].randomElement(using: &random)! + "/" }.joined()
        return Array((folders + ["", "1", "2", "3", "a"].randomElement(using: &random)!).utf8)
    }

    /// As a server answers with a delimiter.
    private func listing(_ bucket: Bucket, _ folder: [UInt8]) -> S3Listing {
        var result = S3Listing()
        var prefixes: Set<[UInt8]> = []
        for (key, object) in bucket where key.starts(with: folder) {
            let rest = key.dropFirst(folder.count)
            if let slash = rest.firstIndex(of: UInt8(ascii: "/")) {
                prefixes.insert(Array(key[...slash]))
            } else {
                result.objects.append(object)
            }
        }
        result.prefixes = Array(prefixes)
        return result
    }

    private func folders(_ bucket: Bucket) -> Set<[UInt8]> {
        var result: Set<[UInt8]> = [[]]
        for key in bucket.keys {
            for (index, byte) in key.enumerated() where byte == UInt8(ascii: "/") { result.insert(Array(key[...index])) }
        }
        return result
    }

    private func look(_ bucket: Bucket, _ random: inout SeededGenerator) -> BucketLook {
        var look = BucketLook()
        var rest = bucket.values.shuffled(using: &random)
        while !rest.isEmpty {
            look.add(Array(rest.prefix(7)))
            rest.removeFirst(min(7, rest.count))
        }
        return look
    }

    @Test func aLookAtTheBucketTellsTheFoldersThatHoldSomethingElse() {
        var random = SeededGenerator(for: "folder digests")
        for _ in 0..<200 {
            var bucket: Bucket = [:]
            for _ in 0..<Int.random(in: 0...60, using: &random) {
                let key = key(&random)
                if !key.isEmpty { bucket[key] = object(key, &random) }
            }
            var digests = FolderDigests()
            let known = folders(bucket)
            for folder in known { digests.listed(folder, listing(bucket, folder), isFirst: true, isCertain: true) }
            let before = bucket
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                let key = Bool.random(using: &random) ? key(&random) : bucket.keys.randomElement(using: &random) ?? []
                if !key.isEmpty { bucket[key] = Bool.random(using: &random) ? nil : object(key, &random) }
            }
            let look = look(bucket, &random)
            for folder in known {
                let (old, new) = (listing(before, folder), listing(bucket, folder))
                let isSame = Set(old.objects) == Set(new.objects) && Set(old.prefixes) == Set(new.prefixes)
                #expect(digests.isChanged(folder, in: look) == !isSame, "\(String(decoding: folder, as: UTF8.self))")
            }
        }
    }

    @Test func aListingOfManyPagesIsOne() {
        var random = SeededGenerator(for: "pages of folder digests")
        let keys = (0..<20).map { Array("folder/\($0)".utf8) }
        let bucket = Dictionary(uniqueKeysWithValues: keys.map { ($0, object($0, &random)) })
        let folder = Array("folder/".utf8)
        let objects = listing(bucket, folder).objects
        var (first, last) = (S3Listing(), S3Listing())
        (first.objects, last.objects) = (Array(objects[..<12]), Array(objects[12...]))
        first.next = .token("more")
        let look = look(bucket, &random)
        var digests = FolderDigests()
        digests.listed(folder, first, isFirst: true, isCertain: true)
        #expect(digests.isChanged(folder, in: look))
        digests.listed(folder, last, isFirst: false, isCertain: true)
        #expect(!digests.isChanged(folder, in: look))
        // What it told on one page was a guess.
        digests.listed(folder, first, isFirst: true, isCertain: false)
        digests.listed(folder, last, isFirst: false, isCertain: true)
        #expect(digests.isChanged(folder, in: look))
    }
}
