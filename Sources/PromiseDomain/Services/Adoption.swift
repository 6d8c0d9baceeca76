package import PromiseAccess
package import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

/// What was taken of a folder outside of the mount.
package struct AdoptionReport: Sendable {
    package var taken = 0
    package var bytesTaken: UInt64 = 0
    package var alreadyHere = 0
    package var failures: [(path: [FileName], failure: Failure)] = []
}

/// Files of a folder outside of the mount become the content of the items that they are, by size
/// and time, without being fetched.
package struct Adoption: Sendable {
    let tree: DomainTree
    let door: AccessDoor
    let pool: BlockingPool

    private enum Outcome {
        case taken(UInt64)
        case here
        case failed([FileName], Failure)
    }

    private static let parallelFiles = 8

    /// `folder` has absolute bytes; each file is at the same path below it and below `place`.
    package func take(
        _ files: [[FileName]], of folder: [UInt8], below place: [FileName], by principal: Principal
    ) async throws(Failure) -> AdoptionReport {
        try door.admit(principal, to: "adoption.take", of: nil, isChange: true)
        guard principal.isOwner else {
            throw Failure(.refused, "only the owner of a domain gives it files of this machine")
        }
        guard folder.first == UInt8(ascii: "/"), !folder.contains(0) else {
            throw Failure(.invalid, "the folder's path is to be absolute")
        }
        var report = AdoptionReport()
        await withTaskGroup(of: Outcome.self) { group in
            var next = 0
            func startOne() {
                guard next < files.count, !Task.isCancelled else { return }
                let file = files[next]
                next += 1
                group.addTask { await take(file, of: folder, below: place) }
            }
            for _ in 0..<Adoption.parallelFiles { startOne() }
            for await outcome in group {
                startOne()
                switch outcome {
                case .taken(let size):
                    report.taken += 1
                    report.bytesTaken = report.bytesTaken.plus(size)
                case .here: report.alreadyHere += 1
                case .failed(let path, let failure): report.failures.append((path, failure))
                }
            }
        }
        return report
    }

    private func take(_ file: [FileName], of folder: [UInt8], below place: [FileName]) async -> Outcome {
        do throws(Failure) {
            let id = try await tree.node(at: place + file)
            let node = try tree.index.read { transaction throws(Failure) in try transaction.node(id) }
            guard let node, node.kind == .file else {
                throw Failure(.invalid, "it is no file in the domain")
            }
            if node.content == .whole { return .here }
            let path = folder + file.flatMap { [UInt8(ascii: "/")] + $0.bytes }
            let status = try await pool.run { () throws(Failure) in
                do throws(SystemError) {
                    return try FileStatus.of(path, label: "adopt.status")
                } catch {
                    throw Failure(error)
                }
            }
            guard status.kind == .file, status.size == node.size,
                status.modificationTime.isSame(as: node.modificationTime)
            else {
                throw Failure(.invalid, "it is not the same by size and time any more")
            }
            tree.engine.hydrator.copies.offer(path, status, for: id, pool: pool)
            defer { tree.engine.hydrator.copies.withdraw(id) }
            if let failure = await HydrationWait(hydrator: tree.engine.hydrator, node: id).outcome() {
                throw failure
            }
            return .taken(node.size)
        } catch {
            return .failed(place + file, error)
        }
    }
}
