import Testing

/// Every lock that docs/THREADS.md puts in order has its rank in the source, and the order is that of the ranks.
@Suite struct LockTests {
    private static let ranks = ["index", "coordinator", "remoteClaims", "hydrator", "hydrationJob", "stitching", "leaf"]

    private func source(declaring type: String) -> SourceTree.SwiftFile? {
        let words = ["class \(type):", "class \(type)<", "struct \(type):", "struct \(type) "]
        return SourceTree.swiftFiles.first { file in
            !file.isTest && file.code.contains { line in words.contains { line.contains($0) } }
        }
    }

    @Test func theOrderInTheDocumentIsThatOfTheRanks() throws {
        let document = try #require(SourceTree.documents.first { $0.path == "docs/THREADS.md" })
        let order = document.lines.compactMap { line -> String? in
            guard let dot = line.firstIndex(of: "."), Int(line[..<dot]) != nil else { return nil }
            return line.split(separator: "`").dropFirst().first.map(String.init)
        }
        #expect(order == LockTests.ranks)
    }

    /// A lock without a rank was found by nobody but the thread that waits for ever.
    @Test(arguments: [
        "StoreLock", "Coordinator", "RemoteClaims", "Hydrator", "HydrationJob", "Stitching", "OpenTable", "SpareFiles",
        "Parking", "FolderOrders", "NeighbourPrefetch", "EchoTable", "Mailbox", "Attempt", "Touches", "LiveQuery",
    ])
    func aLockOfTheOrderHasItsRank(type: String) throws {
        let file = try #require(source(declaring: type), "\(type) is declared nowhere")
        #expect(
            file.code.contains { $0.contains("RankedMutex") || $0.contains("rank: .") || $0.contains("LockRank.") },
            "\(type) has a lock without a rank in \(file.path)")
    }

    /// Threads that serve a mount began tasks there, by the thousand where programs save by a thousand.
    @Test(arguments: [("LaunchPolicy", 0), ("GrantNaming", 1), ("LinkTargets", 0), ("GrantedFolder", 0), ("View+Names", 0)])
    func whatServesAViewBeginsNoTask(file: String, background: Int) throws {
        let source = try #require(SourceTree.swiftFiles.first { $0.path.hasSuffix("/\(file).swift") && !$0.isTest })
        let count = source.code.count { $0.contains("Task {") || $0.contains("Task(") }
        #expect(count == background, "\(source.path): submit it to a thread of the service")
    }
}
