package import PromiseCore
package import PromiseIndex
import PromiseProvider

/// Moves of which this machine has told a store that knows places only, the newest 1,000. Others see a
/// removal and something new there, until they hear that it was a move (`MoveNotes`).
package struct ToldMove: Hashable, Sendable {
    package var from: [FileName]
    package var to: [FileName]

    private static let countMax: UInt64 = 1_000
    private static let prefix = "told-move."
    private static let nextSetting = prefix + "next"

    static func note(
        _ operation: Operation, _ facts: Facts, _ transaction: borrowing Transaction
    ) throws(Failure) {
        guard facts.knowsByPlace, case .modify(let reference, let changes, _, _) = operation.work,
            let place = changes.place, !reference.path.isEmpty, operation.identifier?.isNumber != true
        else { return }
        let move = ToldMove(from: reference.path, to: place.parent.path + [place.name])
        guard move.from != move.to else { return }
        let number = try next(transaction)
        let text = "\(PathDigits.text(move.from)) \(PathDigits.text(move.to))"
        try transaction.setSetting("\(prefix)\(number % countMax)", text)
        try transaction.setSetting(nextSetting, "\(number + 1)")
    }

    /// The number of the next one.
    package static func next(_ transaction: borrowing Transaction) throws(Failure) -> UInt64 {
        try transaction.setting(nextSetting).flatMap { UInt64($0) } ?? 0
    }

    /// From this number on, in order, as far as they are kept.
    package static func all(
        since first: UInt64, _ transaction: borrowing Transaction
    ) throws(Failure) -> [ToldMove] {
        let end = try next(transaction)
        var result: [ToldMove] = []
        for number in max(first, end > countMax ? end - countMax : 0)..<max(end, first) {
            guard let words = try transaction.setting("\(prefix)\(number % countMax)")?.split(separator: " "),
                words.count == 2
            else { continue }
            result.append(ToldMove(from: PathDigits.path(words[0]), to: PathDigits.path(words[1])))
        }
        return result
    }
}
