import PromiseContent
package import PromiseCore
package import PromiseIndex
import PromiseSystem

// What programs have removed, and can have back until its time is over or its room is wanted.

extension SyncEngine {
    private static let removedPerTransaction = 256

    /// While less is free on the disk, besides the share that the engine keeps free itself, nothing
    /// is kept: whoever removes something there wants the room.
    private static let removedReserve: UInt64 = 64 << 20

    /// How much of what was removed may stay on the disk: no more than is free besides, nor than
    /// the cache may have.
    package func roomForRemoved() -> UInt64 {
        if content.isShortOfFiles { return 0 }
        let space = content.space()
        let reserve = max(
            UInt64(Double(space.total) * SyncEngine.freeShareMin), SyncEngine.removedReserve)
        return min(space.free - min(space.free, reserve), cacheLimit ?? .max)
    }

    /// What was removed first goes for good, until so many bytes have gone, or nothing is left.
    /// Returns how many.
    package func dropRemoved(atLeast byteCount: UInt64) throws(Failure) -> UInt64 {
        var freed: UInt64 = 0
        while freed < byteCount {
            let oldest = try index.read { transaction throws(Failure) in
                try RemovedRows.oldest(limit: SyncEngine.removedPerTransaction, transaction)
            }
            if oldest.isEmpty { return freed }
            var chosen: [RemovedItem] = []
            for item in oldest where freed < byteCount {
                chosen.append(item)
                freed = freed.plus(item.localBytes)
            }
            try drop(chosen)
        }
        return freed
    }

    /// These go for good; what has come back meanwhile is left alone. Returns how many went.
    @discardableResult
    package func drop(_ items: [RemovedItem]) throws(Failure) -> Int {
        var count = 0
        var rest = items[...]
        while !rest.isEmpty {
            let part = rest.prefix(SyncEngine.removedPerTransaction)
            rest = rest.dropFirst(part.count)
            let gone = try index.writeFreeing { transaction throws(Failure) in
                var (files, number): ([(node: NodeID, generation: Generation)], Int) = ([], 0)
                for item in part {
                    guard let known = try RemovedRows.item(item.id, transaction),
                        known.node == item.node
                    else { continue }
                    number += 1
                    if let file = try RemovedRows.drop(known, transaction) { files.append(file) }
                }
                return (files, number)
            }
            count += gone.1
            for file in gone.0 { remover.remove(file.node, file.generation) }
        }
        return count
    }

    /// What was removed longer ago than that goes for good.
    package func dropRemoved(before time: Timestamp) throws(Failure) {
        while true {
            let oldest = try index.read { transaction throws(Failure) in
                try RemovedRows.oldest(limit: SyncEngine.removedPerTransaction, transaction)
            }
            let old = oldest.prefix { $0.removalTime < time }
            if old.isEmpty { return }
            try drop(Array(old))
        }
    }

    /// How long what programs remove can come back; nil: it cannot.
    package var removedAge: Duration? { configuration.removedAge }

    /// Not sooner after it was made can what a program makes be kept when it is removed again.
    package var draftAge: Duration { max(configuration.removalDelay, SyncEngine.draftAgeMin) }
    private static let draftAgeMin = Duration.seconds(2)

    /// Of a look for room, and before somebody looks at them.
    package func dropOldRemoved() throws(Failure) {
        guard let age = configuration.removedAge else {
            // It was kept until this start.
            _ = try dropRemoved(atLeast: .max)
            return
        }
        try dropRemoved(before: clock.now().advanced(by: .zero - age))
    }
}
