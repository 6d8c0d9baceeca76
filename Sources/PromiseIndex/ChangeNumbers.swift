package import PromiseCore

/// Whose the numbers of changes are. A number may be given again after a power cut, which took the
/// change that had it: who remembers one has to see that it means nothing any more.
package enum ChangeNumbers {
    private static let key = "change.journal"

    /// Nil: nobody has asked for a number since they were made or renewed.
    package static func identity(_ transaction: borrowing Transaction) throws(Failure) -> String? {
        try transaction.setting(key)
    }

    /// As `identity`, and gives them one.
    package static func identify(_ transaction: borrowing Transaction) throws(Failure) -> String {
        if let known = try identity(transaction) { return known }
        let made = String(UInt64.random(in: .min ... .max), radix: 16)
        try transaction.setSetting(key, made)
        return made
    }

    /// From now on they are another journal's, and those of before are refused.
    package static func renew(_ transaction: borrowing Transaction) throws(Failure) {
        try transaction.setSetting(key, nil)
    }
}
