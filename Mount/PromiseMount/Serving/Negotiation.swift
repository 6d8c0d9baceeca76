import CFuseTransport

/// What INIT settles beyond libfuse's knowledge; the bytes are edited by CFuseTransport.
package enum Negotiation {
    /// FUSE_NO_OPENDIR_SUPPORT (Linux 5.1).
    static let noOpenFolderFlag: UInt64 = 1 << 24
    /// FUSE_PASSTHROUGH (Linux 6.9), in the word that has `flags2` in its upper half; a macro in C that Swift does not import.
    package static let passthroughFlag: UInt64 = 1 << 37
    /// FUSE_OVER_IO_URING (Linux 6.14).
    package static let ringsFlag: UInt64 = 1 << 41

    /// Edits an INIT reply (struct fuse_init_out) and returns the flags in force; a reply of fewer than 64 bytes stays as it is
    /// and has none.
    package static func edit(
        _ reply: inout [UInt8], offered: UInt64, wantsPassthrough: Bool, wantsRings: Bool = false
    ) -> UInt64 {
        let size = reply.count
        return ct_edit_init_reply(&reply, size, offered, wantsPassthrough, wantsRings)
    }
}
