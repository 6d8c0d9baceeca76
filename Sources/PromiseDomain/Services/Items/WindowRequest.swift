package import PromiseCore
import PromiseFilesystem
import PromiseQuery

/// A part of a folder's listing: what a list that is scrolled shows of it.
package struct WindowRequest: Sendable {
    package enum Key: String, Sendable, CaseIterable { case name, date, size, kind, state, tags }

    package enum Scope: Sendable, Hashable {
        case folder(NodeID)
        /// Every name of the domain that has `text` in it.
        case everywhere
        /// What was used last on this machine, whatever the key.
        case recent

        var isFolder: Bool { if case .folder = self { true } else { false } }
    }

    package var scope: Scope
    package var offset = 0
    package var limit = 200
    package var key = Key.name
    package var isDescending = false
    /// Only names that have this in them, whatever their case and accents.
    package var text = ""
    /// Only documents of one of these types; folders always.
    package var types: [String] = []
    /// Also names that begin with a dot.
    package var showsHidden = false
    package var foldersOnly = false

    package init(_ scope: Scope) { self.scope = scope }
}

package struct FolderWindow: Sendable {
    /// Of all the listing.
    package var total: Int
    package var items: [FoundItem]
    /// Why the listing may lack something: the provider has not told of this folder.
    package var reason: String?
}
