import Glibc
import PromiseContent
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseSystem
import PromiseTestSupport
import Testing

/// Files of which so much is cut off that the disk takes long to free it.
@Suite(.timeLimit(.minutes(2))) struct LargeCutTests {
    private static let text = String(repeating: "0123456789abcdef", count: 16 << 10)
    private static let sizeMax: UInt64 = 500

    /// Whoever holds the index finds a file as it was or as the index says, unless it is cut without the index.
    private func isSeenCut(_ domain: SimulatedDomain, _ id: NodeID, to size: UInt64) -> Bool {
        let isSeen = try? domain.index.read { transaction throws(Failure) in
            guard let node = try transaction.node(id) else { return false }
            usleep(1_000)
            return try domain.content.status(id, node.generation)?.size == size && node.size != size
        }
        return isSeen ?? false
    }

    /// Every other call on the mount waited as long as the disk took.
    @Test func nobodyWaitsForTheIndexWhileALargeFileIsCut() async throws {
        let domain = try SimulatedDomain(uploadDelay: .seconds(60), cutWithIndexMax: 64 << 10)
        try await domain.run {
            try await domain.write("start", to: ["file"])
            let file = try await domain.open(["file"])
            var isSeen = false
            // Beside other tests it may take many.
            let deadline = SystemClock().uptime() + .seconds(60)
            var last: UInt64 = 10
            while !isSeen, SystemClock().uptime() < deadline {
                let size = last % Self.sizeMax + 10
                last = size
                try await domain.write(Self.text, to: file)
                let look = Monitor((isOver: false, isSeen: false))
                let onlooker = OwnedThread(name: "onlooker") {
                    while look.withLock({ !$0.isOver }) {
                        if isSeenCut(domain, file.node, to: size) { look.update { $0.isSeen = true } }
                        // Whoever cuts has a turn.
                        usleep(20)
                    }
                }
                try await domain.cut(file.node, to: size)
                look.update { $0.isOver = true }
                onlooker.join()
                isSeen = look.withLock { $0.isSeen }
                let node = try await domain.node(at: ["file"])
                #expect(node.size == size)
            }
            #expect(isSeen)
            domain.close(file)
        }
    }

    @Test(arguments: [true, false]) func whatIsLeftOfALargeFileIsSent(isWhole: Bool) async throws {
        let domain = try SimulatedDomain(cutWithIndexMax: 64 << 10)
        try await domain.run {
            let text = String(repeating: Self.text, count: 8)
            let node = try await domain.placeholder("file", of: text)
            let file = try await domain.open(["file"])
            if isWhole { try await domain.expectBothSidesTheSame("before") }
            try await domain.write("mine", to: file)
            try await domain.cut(node, to: 10)
            domain.close(file)
            try await domain.expectBothSidesTheSame()
            #expect(try await domain.tree() == ["file=mine456789"])
        }
    }

    @Test func aLargeCutThatFailsLeavesTheFile() async throws {
        await #expect(processExitsWith: .success) {
            let domain = try SimulatedDomain(cutWithIndexMax: 64 << 10)
            try await domain.run {
                try await domain.write(LargeCutTests.text, to: ["file"])
                try await domain.expectBothSidesTheSame("before")
                let node = try await domain.node(at: ["file"]).node
                FaultInjection.arm(from: "content.cut:\(EIO)")
                let failure = await #expect(throws: Failure.self) { try await domain.cut(node, to: 10) }
                try #require(failure?.code == .inputOutput)
                try #require(FaultInjection.met == "content.cut")
                try #require(try await domain.tree() == ["file=\(LargeCutTests.text)"])
                try await domain.cut(node, to: 10)
                try await domain.expectBothSidesTheSame("after")
                try #require(try await domain.tree() == ["file=0123456789"])
            }
        }
    }
}
