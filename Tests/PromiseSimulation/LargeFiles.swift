import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseSystem

// Files that come in pieces: what programs do with parts of them, and what such a file is.

extension Program {
    /// More than what is fetched at once, as a rule.
    func pieceCount() -> Int {
        world.plan.hasLargeFiles ? 6 + simulation.pick(20) : 1 + simulation.pick(3)
    }

    /// Where in a file of one token at least something is overwritten.
    func offset(within size: UInt64) -> UInt64 {
        guard world.plan.hasLargeFiles else { return 0 }
        return UInt64(simulation.pick(Int(size) / Ledger.tokenSize) * Ledger.tokenSize)
    }

    func read(_ path: [FileName]) async throws(Failure) {
        let found = try await on.node(at: path)
        guard world.plan.hasLargeFiles, found.kind == .file else {
            _ = try await on.contents(of: found.node)
            return
        }
        note("reads parts of \(display(path))")
        let file = try await on.open(found.node, flags: 0)
        defer { close(file) }
        for _ in 0..<(1 + simulation.pick(3)) where !on.isDead { try await readPart(of: file) }
    }

    /// What a read gives was in the file before it or is after it; zeros are what nobody has written.
    private func readPart(of file: SimulatedMachine.OpenFile) async throws(Failure) {
        let offset = simulation.pick(24) * Ledger.tokenSize
        let count = (1 + simulation.pick(6)) * Ledger.tokenSize
        let before = try world.bytes(of: file.node, on: on)
        let read = try await on.read(file, at: UInt64(offset), count: count)
        let after = try world.bytes(of: file.node, on: on)
        for (index, byte) in read.enumerated() where byte == 0 {
            let position = offset + index
            let wasThere = position < before.count && before[position] != 0
            let isThere = position < after.count && after[position] != 0
            guard wasThere && isThere else { continue }
            world.problems.append("\(name) read a zero at \(position) of node \(file.node)")
            return
        }
    }
}

extension SimulatedMachine {
    func read(_ file: OpenFile, at offset: UInt64, count: Int) async throws(Failure) -> [UInt8] {
        try await call { (reply: @escaping Reply<[UInt8]>) in
            filesystem.read(
                FilePosition(node: file.node, handle: file.handle, offset: offset), count: count,
                caller: caller
            ) { result in reply(result.flatMap(SimulatedMachine.bytes)) }
        }
    }

    private static func bytes(of answer: ReadReply) -> Result<[UInt8], Failure> {
        switch answer {
        case .bytes(let bytes): .success(bytes)
        case .descriptor(let descriptor, let range):
            readBytes(descriptor, range)
        }
    }

    static func readBytes(_ descriptor: Int32, _ range: ByteRange) -> Result<[UInt8], Failure> {
        var bytes = [UInt8](repeating: 0, count: Int(range.count))
        let result: Result<Int, Failure> = bytes.withUnsafeMutableBytes { room in
            do throws(SystemError) {
                let label: StaticString = "simulation.read"
                return .success(try readFully(descriptor, into: room, at: range.lower, label: label))
            } catch {
                return .failure(Failure(error))
            }
        }
        return result.map { Array(bytes[..<$0]) }
    }

    func hasHoles(_ id: NodeID) throws(Failure) -> Bool {
        try index.read { transaction throws(Failure) in try !transaction.holes(of: id).isEmpty }
    }
}

extension Schedule {
    /// What a program that reads all of a file gets, as far as anybody has it: where a part of it is here only,
    /// the rest is that of the version it is of.
    func bytes(of id: NodeID, on machine: SimulatedMachine) throws(Failure) -> [UInt8] {
        let node = try machine.index.read { transaction throws(Failure) in
            try transaction.node(id)
        }
        guard let node else { return [] }
        return try bytes(of: node, on: machine)
    }

    func bytes(of node: Node, on machine: SimulatedMachine) throws(Failure) -> [UInt8] {
        let local = try machine.localContents(of: node.id) ?? []
        if node.content == .whole { return local }
        var result = node.version.flatMap { store.contents[$0.rawValue] } ?? []
        let size = Int(node.size)
        result = Array(result.prefix(size)) + [UInt8](repeating: 0, count: max(0, size - result.count))
        let here = try machine.index.read { transaction throws(Failure) in
            try transaction.ranges(of: node.id)
        }
        for range in here.ranges {
            for position in Int(range.lower)..<min(Int(range.upper), size, local.count) {
                result[position] = local[position]
            }
        }
        return result
    }
}
