import PromiseContent
package import PromiseCore
package import PromiseIndex
import PromiseSystem

extension SyncEngine {
    package var removed: RemovedContents { RemovedContents(engine: self) }
}

/// What programs have removed, and can have back until its time is over or its room is wanted.
package struct RemovedContents: Sendable {
    let engine: SyncEngine

    private static let perTransaction = 256

    /// While less is free on the disk, besides the share that the engine keeps free itself, nothing
    /// is kept: whoever removes something there wants the room.
    private static let reserveMin: UInt64 = 64 << 20

    /// How much of what was removed may stay on the disk: no more than is free besides, nor than
    /// the cache may have.
    package func room() -> UInt64 {
        if engine.content.isShortOfFiles { return 0 }
        let space = engine.content.space()
        let reserve = max(
            UInt64(Double(space.total) * SyncEngine.freeShareMin), RemovedContents.reserveMin)
        return min(space.free - min(space.free, reserve), engine.cacheLimit ?? .max)
    }

    /// What was removed first goes for good, until so many bytes have gone, or nothing is left.
    /// Returns how many.
    package func drop(atLeast byteCount: UInt64) throws(Failure) -> UInt64 {
        var freed: UInt64 = 0
        while freed < byteCount {
            let oldest = try engine.index.read { transaction throws(Failure) in
                try RemovedRows.oldest(limit: RemovedContents.perTransaction, transaction)
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
            let part = rest.prefix(RemovedContents.perTransaction)
            rest = rest.dropFirst(part.count)
            let gone = try engine.index.writeFreeing { transaction throws(Failure) in
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
            for file in gone.0 { engine.remover.remove(file.node, file.generation) }
        }
        return count
    }

    /// What was removed longer ago than that goes for good.
    package func drop(before time: Timestamp) throws(Failure) {
        while true {
            let oldest = try engine.index.read { transaction throws(Failure) in
                try RemovedRows.oldest(limit: RemovedContents.perTransaction, transaction)
            }
            let old = oldest.prefix { $0.removalTime < time }
            if old.isEmpty { return }
            try drop(Array(old))
        }
    }

    /// How long what programs remove can come back; nil: it cannot.
    package var age: Duration? { engine.configuration.removedAge }

    /// Not sooner after it was made can what a program makes be kept when it is removed again.
    package var draftAge: Duration { max(engine.configuration.removalDelay, RemovedContents.draftAgeMin) }
    private static let draftAgeMin = Duration.seconds(2)

    /// Of a look for room, and before somebody looks at them.
    package func dropOld() throws(Failure) {
        guard let age else {
            // It was kept until this start.
            _ = try drop(atLeast: .max)
            return
        }
        try drop(before: engine.clock.now().advanced(by: .zero - age))
    }
}
