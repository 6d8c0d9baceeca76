package import PromiseCoordination
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseSync

/// A claim that somebody wants.
package struct ClaimRequest: Sendable {
    package var items: [(path: [FileName], access: Access)]
    package var purpose: Purpose?
    /// The claims that it is nested in; nil: nobody said.
    package var within: Set<ClaimID>?
    /// Nobody is kept out: presenters are asked for all claims that are nested in it.
    package var isPreparation = false
    /// Links out of the mount are not followed, wherever they lead.
    package var isConfined = false
    /// The process that is to get at the items, with its children; 0: nobody in particular.
    package var process: Int32
    package var timeout: Duration?
    /// Called whenever others have waited for its end for as long as a presenter may take for an
    /// answer. From any thread; it is not to wait.
    package var whenOverdue: (@Sendable (ClaimID) -> Void)?
    /// How whoever holds the claim is told that it is over. Of anybody, once at most; it is not to
    /// wait.
    package private(set) var ending: (@Sendable () -> Void)?

    package init(
        items: [(path: [FileName], access: Access)], purpose: Purpose?, process: Int32,
        timeout: Duration?
    ) {
        self.items = items
        self.purpose = purpose
        self.process = process
        self.timeout = timeout
    }

    package func ended(by ending: @escaping @Sendable () -> Void) -> ClaimRequest {
        var request = self
        request.ending = ending
        return request
    }
}

/// The name by which an item was asked for. Another name of it, which somebody may make meanwhile
/// by ln(1), is another item.
struct AskedName: Sendable {
    private let entry: EntryID
    /// What it named when it was the only one; nil: it was one of several.
    private let only: NodeID?

    init(_ entry: Entry, isOnlyOne: Bool) {
        self.entry = entry.id
        only = isOnlyOne ? entry.node : nil
    }

    /// Where it is now, of a claim that is on `node` by now; nil: it has gone. A document that was
    /// saved as a new file may have a new name, at the same place: then it is that of the new file.
    func path(_ node: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> [FileName]? {
        let isOther = only.map { $0 != node } ?? false
        if let entry = try transaction.entry(entry), !isOther || entry.node == node {
            return try transaction.path(of: entry.parent).map { $0 + [entry.name] }
        }
        return isOther ? try transaction.path(of: node) : nil
    }
}

/// A claim that was granted: the nodes of its items, in the order in which they were asked for.
package struct GrantedClaim: Sendable {
    package var id: ClaimID
    package var nodes: [NodeID]
    /// The places of what is to be replaced, and of what was not there: what is elsewhere is not
    /// what its writer wants.
    var places: [Int: TreePlace]
    /// The names that were asked for.
    var names: [Int: AskedName]

    package init(id: ClaimID, nodes: [NodeID]) {
        self.init(id: id, nodes: nodes, places: [:], names: [:])
    }

    init(id: ClaimID, nodes: [NodeID], places: [Int: TreePlace], names: [Int: AskedName]) {
        self.id = id
        self.nodes = nodes
        self.places = places
        self.names = names
    }

    package func isAboutPlace(_ number: Int) -> Bool { places[number] != nil }

    /// The item; or the folder and the name in it that nothing has yet.
    package func holder(_ number: Int) -> (node: NodeID, missing: FileName?)? {
        let node = nodes[number]
        return node.isVacancy ? places[number].map { ($0.parent, $0.name) } : (node, nil)
    }

    func paths(_ transaction: borrowing Transaction) throws(Failure) -> [[FileName]] {
        var result: [[FileName]] = []
        for (number, node) in nodes.enumerated() {
            let path: [FileName]?
            if let place = places[number] {
                path = try transaction.path(of: place.parent).map { $0 + [place.name] }
            } else if let name = names[number] {
                path = try name.path(node, transaction)
            } else {
                path = try transaction.path(of: node)
            }
            guard let path else {
                throw Failure(.gone, "an item was removed while the claim waited for it")
            }
            result.append(path)
        }
        return result
    }
}
