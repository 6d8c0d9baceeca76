import PromiseCore
import PromiseProvider
import PromiseTestSupport
import Synchronization
import Testing

/// What the conformance suite says of what files were: nothing of a storage that keeps it right, and what is wrong of one that
/// does not.
@Suite struct EarlierVersionCheckTests {
    @Test func aStorageThatKeepsVersionsPasses() async throws {
        let provider = KeepingProvider(keepingVersions: .right)
        let report = await provider.report(.versions)
        #expect(report.results.count == 6 && report.passedCount == 6, "\(report)")
        #expect(await provider.memory.names() == [])
    }

    @Test(arguments: [
        (VersionConduct.saysTooMuch, "an earlier version is read whole, as long as it is said to be"),
        (.endsInItsMiddle, "an earlier version is read whole, as long as it is said to be"),
        (.leavesAGap, "an earlier version is read whole, as long as it is said to be"),
        (.sendsWhatItNeverWas, "an earlier version is read whole, as long as it is said to be"),
        (.namesAnother, "an earlier version is read whole, as long as it is said to be"),
        (.listsTheOldestFirst, "earlier versions are listed the newest first, each once"),
        (.tellsTimesBackwards, "earlier versions are listed the newest first, each once"),
        (.listsTwice, "earlier versions are listed the newest first, each once"),
        (.listsTooMany, "earlier versions are listed the newest first, each once"),
        (.listsThePresent, "what a file is now is no earlier version of it"),
        (.waitsForUnknownVersions, "an earlier version that is not kept is not found"),
        (.sendsUnknownVersions, "an earlier version that is not kept is not found"),
        (.bringsBackWhatIsRead, "reading an earlier version changes nothing"),
        (.forgetsWhatIsRead, "reading an earlier version changes nothing"),
        (.waitsForWhatIsNotThere, "what is not there has no earlier versions"),
        (.inventsThem, "what is not there has no earlier versions"),
    ])
    func whatIsWrongWithVersionsIsFound(conduct: VersionConduct, check: String) async throws {
        let report = await KeepingProvider(keepingVersions: conduct).report(.versions)
        #expect(report.failures.contains { $0.name == check }, "\(report)")
    }

    /// It breaks no rule, and is not said to keep what was never seen.
    @Test func aStorageThatHasKeptNothingIsNotSaidToPass() async throws {
        let report = await KeepingProvider(keepingVersions: .keepsNone).report(.versions)
        #expect(report.failures.isEmpty && report.passedCount == 2, "\(report)")
        #expect(Set(report.skipped.map(\.reason)) == ["of a file that was modified three times nothing is kept"])
    }

    @Test func aStorageWithoutVersionsIsNotAskedForAny() async throws {
        let root = ItemReference(identifier: MemoryProvider.rootIdentifier, path: [])
        let report = await ConformanceSuite(provider: MemoryProvider(), folder: root).run(needing: .versions)
        #expect(report.skipped.count == 6 && report.skipped.allSatisfy { $0.reason == "not declared: versions" })
    }
}

/// What a storage does with what files were.
enum VersionConduct: Sendable {
    case right, keepsNone
    case saysTooMuch, endsInItsMiddle, leavesAGap, sendsWhatItNeverWas, namesAnother
    case listsTheOldestFirst, tellsTimesBackwards, listsTwice, listsTooMany, listsThePresent
    case waitsForUnknownVersions, sendsUnknownVersions, bringsBackWhatIsRead, forgetsWhatIsRead
    case waitsForWhatIsNotThere, inventsThem
}

/// What the files of a storage in memory were.
final class MemoryPast: Sendable {
    private struct Kept {
        var file: ItemIdentifier
        var version: EarlierVersion
        var bytes: [UInt8]
    }

    private let memory: MemoryProvider
    private let conduct: VersionConduct
    /// The oldest first.
    private let kept = Mutex<[Kept]>([])

    init(_ memory: MemoryProvider, _ conduct: VersionConduct) { (self.memory, self.conduct) = (memory, conduct) }

    private static func version(_ stored: MemoryProvider.Stored) -> EarlierVersion {
        EarlierVersion(
            identifier: "kept-" + stored.item.version.rawValue, version: stored.item.version, size: stored.item.size,
            modificationTime: stored.item.metadata.modificationTime)
    }

    func keep(_ stored: MemoryProvider.Stored) {
        if conduct == .keepsNone { return }
        let one = Kept(file: stored.item.identifier, version: Self.version(stored), bytes: stored.bytes)
        kept.withLock { $0.append(one) }
    }

    func list(of reference: ItemReference) async throws(ProviderError) -> [EarlierVersion] {
        let now = await memory.items[reference.identifier]
        guard let now else {
            if conduct == .inventsThem {
                return [EarlierVersion(identifier: "x", version: ContentVersion("x"), size: 1, modificationTime: .zero)]
            }
            throw ProviderError(conduct == .waitsForWhatIsNotThere ? .retry : .notFound, "there is no such file")
        }
        var versions = kept.withLock { Array($0.filter { $0.file == reference.identifier }.map(\.version).reversed()) }
        switch conduct {
        case .saysTooMuch: for index in versions.indices { versions[index].size += 1 }
        case .namesAnother:
            let names = versions.map(\.version)
            for index in versions.indices { versions[index].version = names[names.count - 1 - index] }
        case .listsTheOldestFirst: versions.reverse()
        case .tellsTimesBackwards:
            // In the order of its times, which are not those of the contents.
            let times = versions.map(\.modificationTime)
            versions.reverse()
            for index in versions.indices { versions[index].modificationTime = times[index] }
        case .listsTwice: versions += versions.suffix(1)
        case .listsTooMany:
            let last = versions.last
            for number in 0...10_000 {
                guard var more = last else { break }
                more.identifier = "more-\(number)"
                versions.append(more)
            }
        case .listsThePresent: versions.insert(Self.version(now), at: 0)
        default: break
        }
        return versions
    }

    func fetch(_ version: EarlierVersion, of reference: ItemReference, into sink: any ContentSink) async throws(ProviderError) {
        let found = kept.withLock { kept in
            kept.first { $0.file == reference.identifier && $0.version.identifier == version.identifier }
        }
        guard let found else {
            if conduct == .sendsUnknownVersions { return }
            throw ProviderError(conduct == .waitsForUnknownVersions ? .retry : .notFound, "it is not kept any more")
        }
        var bytes = found.bytes
        switch conduct {
        case .endsInItsMiddle: bytes = Array(bytes.dropLast(bytes.count / 2))
        case .sendsWhatItNeverWas: bytes = bytes.map { ~$0 }
        case .bringsBackWhatIsRead: await memory.change(reference.identifier, text: "other")
        case .forgetsWhatIsRead: kept.withLock { $0.removeAll { $0.version.identifier == version.identifier } }
        default: break
        }
        if conduct == .leavesAGap, bytes.count > 3 {
            try write(bytes[..<1], to: sink, at: 0)
            try write(bytes[2...], to: sink, at: 2)
        } else {
            try write(bytes[...], to: sink, at: 0)
        }
    }

    private func write(_ bytes: ArraySlice<UInt8>, to sink: any ContentSink, at offset: UInt64) throws(ProviderError) {
        let result: Result<Void, ProviderError> = bytes.withUnsafeBytes { bytes in
            do throws(ProviderError) { return .success(try sink.write(bytes, at: offset)) } catch { return .failure(error) }
        }
        try result.get()
    }
}
