/// What a node is. Only files, folders and links exist at a provider; the rest is local.
package enum NodeKind: Int, Sendable, Hashable, CaseIterable {
    case file = 0
    case folder = 1
    case link = 2
    case fifo = 3
    case socket = 4
    case characterDevice = 5
    case blockDevice = 6

    /// Providers hold files, folders and links; everything else works on this machine only.
    package var isStorable: Bool { self == .file || self == .folder || self == .link }

    /// The type bits of `st_mode` (inode(7)).
    package var modeBits: UInt32 {
        switch self {
        case .file: 0o100000
        case .folder: 0o040000
        case .link: 0o120000
        case .fifo: 0o010000
        case .socket: 0o140000
        case .characterDevice: 0o020000
        case .blockDevice: 0o060000
        }
    }

    /// Returns nil for type bits that Linux does not have.
    package init?(modeBits: UInt32) {
        guard let kind = NodeKind.allCases.first(where: { $0.modeBits == modeBits & 0o170000 }) else { return nil }
        self = kind
    }
}

/// What `chmod`, `chown` and `utimensat` set, as far as a provider is told of it.
package struct Metadata: Hashable, Sendable {
    /// Permission, set-id and sticky bits: 0 to 0o7777.
    package var mode: UInt32
    package var owner: UInt32
    package var group: UInt32
    package var modificationTime: Timestamp

    package init(mode: UInt32, owner: UInt32, group: UInt32, modificationTime: Timestamp) {
        self.mode = mode
        self.owner = owner
        self.group = group
        self.modificationTime = modificationTime
    }

    /// The mode that content takes over from other content, which had `mode`. Bits that let a program
    /// run as its owner or group pass only to what had them before, with `own` (inode(7)).
    package static func mode(_ mode: UInt32, passedToContentOf own: UInt32) -> UInt32 {
        mode & ~0o6000 | mode & own & 0o6000
    }
}
