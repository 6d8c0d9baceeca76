import PromiseCore
import PromiseIndex

extension Transaction {
    func hasSyncedChildren(of parent: ItemIdentifier) throws(Failure) -> Bool { try !syncedChildren(of: parent).isEmpty }
}
