import PromiseCore

/// Who owns items as the mount shows them, and with which modes: what is stored, and what the provider has, stays as it is.
///
/// The numbers of another machine's users mean nothing here, and must not lock anybody out of their own storage.
package struct ShownOwners: Sendable, Equatable {
    /// nil: as stored.
    package var user: UInt32?
    package var group: UInt32?
    /// Bits that files and folders do not show.
    package var fileMask: UInt32
    package var folderMask: UInt32

    package init(user: UInt32? = nil, group: UInt32? = nil, fileMask: UInt32 = 0, folderMask: UInt32 = 0) {
        self.user = user
        self.group = group
        self.fileMask = fileMask
        self.folderMask = folderMask
    }

    func applied(to attributes: NodeAttributes) -> NodeAttributes {
        var shown = attributes
        if let user { shown.owner = user }
        if let group { shown.group = group }
        // The bits of a link mean nothing.
        if attributes.kind != .link { shown.permissions &= ~(attributes.kind == .folder ? folderMask : fileMask) }
        return shown
    }
}
