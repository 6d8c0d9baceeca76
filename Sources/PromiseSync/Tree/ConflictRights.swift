package import PromiseCore
package import PromiseIndex

extension Node {
    /// A conflict version is nobody's to read or write who may not do so with its document: who could
    /// make a document's edit go beside it would read it there.
    mutating func allowNoMore(than documentMode: UInt32, owner: UInt32, group: UInt32) {
        mode &= documentMode | ~0o7777
        (self.owner, self.group) = (owner, group)
    }

    mutating func allowNoMore(than document: Metadata) {
        allowNoMore(than: document.mode, owner: document.owner, group: document.group)
    }
}

extension Transaction {
    /// The same, of the document of an item that is here.
    package func limitRights(of node: inout Node, to item: ItemIdentifier?) throws(Failure) {
        guard let item, let entry = try entry(for: item), let document = try self.node(entry.node) else { return }
        node.allowNoMore(than: document.mode, owner: document.owner, group: document.group)
    }
}
