import PromiseAccess
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseKeyValue

/// Where in a domain a question looks, whatever folder it is about.
package enum QueryArea: String, Sendable, CaseIterable {
    /// References are left out.
    case everywhere
    /// What is below the `Documents` folders of containers.
    case documents
    /// What else is below the folders of containers.
    case data
    /// References, which stand for documents elsewhere, and nothing else.
    case external

    package var isOfContainers: Bool { self == .documents || self == .data }
}

/// The folders of the containers that a question is about, as they were known at some time.
struct ContainerPlaces: Sendable {
    var area = QueryArea.everywhere
    var folders: Set<NodeID> = []
    /// Of `Containers`: another one where they may be others by now.
    var changeCount = 0

    /// Of containers in each other the inner one counts.
    func hold(_ entry: Entry, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        guard area.isOfContainers else { return true }
        guard let above = try transaction.foldersAbove(entry), let place = above.firstIndex(where: folders.contains)
        else { return false }
        let name = FileName(trusted: Array(Containers.documentsName.utf8))
        let documents = try transaction.entry(in: above[place], named: name)?.node
        // On the way down from the container's folder.
        let step = place == 0 ? entry.node : above[place - 1]
        return area == .documents ? step == documents && place > 0 : step != documents
    }
}

extension Containers {
    /// Those of one application, or of all, as far as they are known here.
    func places(of application: String?, in area: QueryArea) async throws(Failure) -> ContainerPlaces {
        guard area.isOfContainers else { return ContainerPlaces(area: area) }
        // Before they are looked at, and not behind.
        let changeCount = changeCount
        let known = try await containers()
        let folders: Set<NodeID> = try tree.index.read { transaction throws(Failure) in
            var folders: Set<NodeID> = []
            for (key, container) in known where application.map({ key.text.utf8.elementsEqual($0.utf8) }) ?? true {
                let finding = try ItemFinder(container.record.folder, bound: container.entry).find(transaction)
                if finding.fate == .found, let entry = finding.entry { folders.insert(entry.node) }
            }
            return folders
        }
        return ContainerPlaces(area: area, folders: folders, changeCount: changeCount)
    }
}
