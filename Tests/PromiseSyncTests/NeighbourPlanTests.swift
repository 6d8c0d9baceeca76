import PromiseCore
import PromiseSync
import PromiseTestSupport
import Testing

/// Folders of small files, and what the plan fetches ahead while a program opens them.
private struct Reader {
    /// In the order of the listing. A file's number is that of its node.
    var folders: [NodeID: [Neighbour]] = [:]
    /// Of each folder: its place and the folder it is in.
    var places: [NodeID: (entry: Neighbour, above: NodeID)] = [:]
    var plan = NeighbourPlan()
    var fetched: [Int] = []
    var misses = 0
    /// Folders from this number on are not listed yet.
    var listedCount = 1_000_000

    private static let top = NodeID(7)

    /// One folder, listed in the order of numbers; the names are in this order or mixed up.
    init(count: Int, size: UInt64 = 4096, isNamedInOrder: Bool = true) {
        folders[Reader.top] = (0..<count).map { number in
            let name = isNamedInOrder ? 10_000 + number : 10_000 + number * 7919 % 10_007
            return Reader.file(number, "file \(name)", size: size, isWanted: number % 10 != 9)
        }
    }

    /// Folders of files, each in the order of numbers, in one folder.
    init(folderCount: Int, fileCount: Int) {
        folders[Reader.top] = []
        for number in 0..<folderCount {
            let folder = NodeID(UInt64(1_000_000 + number))
            let place = Neighbour(
                entry: EntryID(Int64(1_000_000 + number)), node: folder, name: FileName("folder \(10_000 + number)")!, size: 0,
                use: .entered)
            folders[Reader.top]?.append(place)
            places[folder] = (place, Reader.top)
            folders[folder] = (0..<fileCount).map { file in
                Reader.file(number * fileCount + file, "\(1000 + file)", size: 4096, isWanted: true)
            }
        }
    }

    /// Folders of files among files, all in one folder: file `number * (fileCount + 1)` is before the folder of those after it.
    static func mixed(folderCount: Int, fileCount: Int) -> Reader {
        var reader = Reader(folderCount: folderCount, fileCount: fileCount)
        let folders = reader.folders[top]!
        for (number, folder) in folders.enumerated() {
            let first = number * (fileCount + 1)
            reader.folders[folder.node] = (1...fileCount).map { number in
                file(first + number, "\(1000 + number)", size: 4096, isWanted: true)
            }
        }
        reader.folders[top] = folders.enumerated().flatMap { number, folder in
            [file(number * (fileCount + 1), "file \(1000 + number)", size: 4096, isWanted: true), folder]
        }
        return reader
    }

    private static func file(_ number: Int, _ name: String, size: UInt64, isWanted: Bool) -> Neighbour {
        Neighbour(
            entry: EntryID(Int64(100 + number)), node: NodeID(UInt64(100 + number)), name: FileName(name)!, size: size,
            use: isWanted ? .fetched : .passed)
    }

    /// Opens file `number`; returns what is fetched now.
    mutating func open(_ number: Int) -> [Int] {
        let node = NodeID(UInt64(100 + number))
        let folder = folders.first { $0.value.contains { $0.node == node } }!.key
        let file = folders[folder]!.first { $0.node == node }!
        if file.use == .fetched, !fetched.contains(number) { misses += 1 }
        if plan.isNew(folder), let (place, above) = places[folder] { tell(place, isFolder: true, in: above, above: nil) }
        tell(file, isFolder: false, in: folder, above: places[folder]?.above)
        var next: [Int] = []
        while let step = plan.next(after: folder) {
            switch step {
            case .load(let load): self.load(load)
            case .fetch(let node, _): next.append(Int(node.rawValue) - 100)
            }
        }
        fetched += next
        return next
    }

    private mutating func tell(_ opened: Neighbour, isFolder: Bool, in folder: NodeID, above: NodeID?) {
        let place = NeighbourPlan.Place(entry: opened.entry, name: opened.name)
        for load in plan.opened(place, isFolder: isFolder, in: folder, above: above) { self.load(load) }
    }

    private mutating func load(_ load: NeighbourPlan.Load) {
        if load.after == nil, load.folder.rawValue >= 1_000_000 + UInt64(listedCount) { return plan.isNotListed(load) }
        var files = folders[load.folder]!
        if load.order == .name { files.sort { $0.name < $1.name } }
        let start = load.after.map { place in files.firstIndex { $0.entry == place.entry }! + 1 } ?? 0
        plan.loaded(Array(files[start...].prefix(NeighbourPlan.loadCount)), for: load)
    }

    /// Numbers in the order of names.
    var byName: [Int] { folders[Reader.top]!.sorted { $0.name < $1.name }.map { Int($0.node.rawValue) - 100 } }
}

@Suite struct NeighbourPlanTests {
    @Test(arguments: [true, false]) func aReaderInOrderFindsTheNextFilesHere(isNamedInOrder: Bool) {
        var reader = Reader(count: 1000, isNamedInOrder: isNamedInOrder)
        for number in 0..<1000 { _ = reader.open(number) }
        #expect(reader.misses <= 3)
        #expect(Set(reader.fetched).count == reader.fetched.count, "nothing is given twice")
        #expect(reader.fetched.allSatisfy { $0 % 10 != 9 }, "only what is wanted is given")
    }

    @Test func aReaderWhoSortsByNameFindsTheNextFilesHere() {
        var reader = Reader(count: 1000, isNamedInOrder: false)
        for number in reader.byName { _ = reader.open(number) }
        #expect(reader.misses <= 3)
        #expect(Set(reader.fetched).count == reader.fetched.count, "nothing is given twice")
    }

    @Test func whoGoesFromFolderToFolderFindsTheNextFoldersFilesHere() {
        var reader = Reader(folderCount: 100, fileCount: 10)
        for number in 0..<1000 { _ = reader.open(number) }
        #expect(reader.misses <= 12)
        #expect(Set(reader.fetched).count == reader.fetched.count, "nothing is given twice")
        #expect(reader.fetched.count >= 988)
    }

    @Test func foldersAreGoneAheadIntoWhenTheyAreListed() {
        var reader = Reader(folderCount: 300, fileCount: 3)
        for number in 0..<900 {
            reader.listedCount = number / 3 + 5
            _ = reader.open(number)
        }
        #expect(reader.misses <= 12)
    }

    @Test func noMoreFoldersAreGoneAheadIntoThanTheFilesAheadAllow() {
        var reader = Reader(folderCount: 300, fileCount: 10)
        for number in 0..<500 {
            _ = reader.open(number)
            #expect((reader.fetched.max() ?? 0) - number <= 64)
        }
    }

    @Test func whoOpensOneFileInEachFolderHasFewOthersFetched() {
        var reader = Reader(folderCount: 300, fileCount: 10)
        for number in stride(from: 0, to: 3000, by: 10) { _ = reader.open(number) }
        #expect(reader.fetched.count <= 150, "\(reader.fetched.count)")
    }

    @Test func whoLeavesAFolderAfterAGlanceStillFindsTheNextFilesBesideIt() {
        var reader = Reader.mixed(folderCount: 60, fileCount: 10)
        for number in 0..<10 { _ = reader.open(number * 11) }
        _ = reader.open(9 * 11 + 1)
        let before = reader.misses
        for number in 10..<60 { _ = reader.open(number * 11) }
        #expect(reader.misses - before <= 3)
    }

    @Test func aSingleOpenFetchesNothingElse() {
        for opens in [[0], [0, 1], [5, 500, 7], [10, 9, 8, 7, 6, 5]] {
            var reader = Reader(count: 1000)
            for number in opens { #expect(reader.open(number).isEmpty) }
        }
    }

    @Test func whoOpensHereAndThereGetsNothing() {
        var random = SeededGenerator(for: "neighbours")
        var reader = Reader(count: 5000)
        for _ in 0..<300 { _ = reader.open(Int.random(in: 0..<5000, using: &random)) }
        #expect(reader.fetched.isEmpty, "seed \(random.seed)")
    }

    @Test func theWindowGrowsAndHasALimit() {
        var reader = Reader(count: 1000)
        var furthest: [Int] = []
        for number in 0..<200 {
            _ = reader.open(number)
            furthest.append((reader.fetched.max() ?? number) - number)
        }
        #expect(furthest[2] <= 8 && furthest[4] > furthest[2])
        #expect(furthest.max()! > 40 && furthest.max()! <= 64)
    }

    @Test func largerFilesAreFetchedFewerAtATime() {
        var reader = Reader(count: 200, size: 1 << 20)
        for number in 0..<100 {
            _ = reader.open(number)
            #expect(reader.fetched.filter { $0 > number }.count <= 16)
        }
        #expect(reader.fetched.count > 50)
    }

    @Test func skippedFilesAndSeveralReadersKeepTheOrder() {
        var reader = Reader(count: 1000)
        for number in stride(from: 0, to: 600, by: 6) {
            for step in [2, 0, 3, 1] { _ = reader.open(number + step) }
        }
        #expect(reader.fetched.count > 300)
    }

    @Test func theEndOfAFolderIsAnEnd() {
        var reader = Reader(count: 12)
        for number in 0..<12 { _ = reader.open(number) }
        #expect(reader.open(11).isEmpty && reader.fetched.max() == 11)
    }

    @Test func filesThatAreNotSmallAreFetchedForWhoReadsThemWhole() {
        var reader = Reader(count: 100, size: 3 << 20)
        reader.folders = reader.folders.mapValues { files in
            files.map { file in
                var file = file
                if file.use == .fetched { file.use = .fetchedForWholeReads }
                return file
            }
        }
        for number in 0..<10 { #expect(reader.open(number).isEmpty) }
        reader.plan.readsWhole(in: NodeID(7))
        #expect(reader.open(10) == [11, 12, 13, 14, 15])
        #expect(reader.open(11) == [16])
        reader.plan.readsWhole(in: nil)
        #expect(reader.open(12).isEmpty)
    }

    @Test func whoseFilesWereReadToTheirEndReadsWhole() {
        var reads = WholeReads()
        let folder = NodeID(2)
        reads.opened(NodeID(10), in: folder, isFetchedAhead: false, isWhole: false)
        #expect(reads.folder == nil && reads.earlier(in: folder) == [NodeID(10)])
        reads.opened(NodeID(11), in: folder, isFetchedAhead: false, isWhole: true)
        #expect(reads.folder == folder)
        // It is whole whatever was read of it.
        reads.opened(NodeID(12), in: folder, isFetchedAhead: true, isWhole: false)
        #expect(reads.folder == folder && reads.earlier(in: folder) == [NodeID(10), NodeID(11)])
        reads.opened(NodeID(13), in: folder, isFetchedAhead: false, isWhole: false)
        #expect(reads.folder == nil)
        reads.opened(NodeID(14), in: folder, isFetchedAhead: false, isWhole: true)
        reads.opened(NodeID(15), in: NodeID(3), isFetchedAhead: false, isWhole: true)
        #expect(reads.earlier(in: folder).isEmpty)
    }
}
