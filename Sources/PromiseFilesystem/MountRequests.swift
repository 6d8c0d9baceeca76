package import PromiseCore

// What the kernel asks and is answered, as values.

/// Who made a request. The kernel has checked the permissions already (`default_permissions`).
package struct Caller: Sendable, Hashable {
    package var user: UInt32
    package var group: UInt32
    /// 0 when the kernel itself asks, and for a process outside the mount's pid namespace.
    package var process: Int32
    /// Bits that a new node's mode loses, unless its folder has a default ACL; 0 in operations that create nothing.
    package var umask: UInt32
    /// The kernel's number of the request; a request that is sent again keeps its number.
    package var request: UInt64
    /// The daemon before this one has received it, too, and may have carried it out.
    package var isResent: Bool
    /// It came by the mount of an application, of which no successor knows and which has no pages.
    package var isOfView: Bool
    /// Of a rename: what is renamed has no other names, or it fails with `.crossDevice`.
    package var onlyNames: OnlyNames?

    package init(
        user: UInt32, group: UInt32, process: Int32, umask: UInt32 = 0, request: UInt64 = 0, isResent: Bool = false,
        isOfView: Bool = false
    ) {
        self.isOfView = isOfView
        self.user = user
        self.group = group
        self.process = process
        self.umask = umask
        self.request = request
        self.isResent = isResent
    }
}

/// Those in one folder, and one more.
package struct OnlyNames: Sendable, Hashable {
    package var folder: NodeID
    package var entry: EntryID
}

/// The file system's name of an open file; it chooses the number and gets it back until the release.
package struct HandleID: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
    package init(_ rawValue: UInt64) { self.rawValue = rawValue }
}

/// The file system's name of a request that it has not answered yet. Numbers are not reused while the mount lives.
package struct ParkedRequest: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
    package init(_ rawValue: UInt64) { self.rawValue = rawValue }
}

/// Everything `stat` shows of a node.
package struct NodeAttributes: Sendable, Hashable {
    package var node: NodeID
    package var kind: NodeKind
    /// 0 to 0o7777.
    package var permissions: UInt32
    package var links: UInt32
    package var owner: UInt32
    package var group: UInt32
    /// In bytes.
    package var size: UInt64
    /// Of 512 bytes.
    package var blocks: UInt64
    /// `st_rdev` of a device, else 0.
    package var deviceNumber: UInt64
    package var accessTime: Timestamp
    package var modificationTime: Timestamp
    package var changeTime: Timestamp

    package init(
        node: NodeID, kind: NodeKind, permissions: UInt32, links: UInt32, owner: UInt32, group: UInt32, size: UInt64,
        blocks: UInt64, deviceNumber: UInt64 = 0, accessTime: Timestamp, modificationTime: Timestamp, changeTime: Timestamp
    ) {
        self.node = node
        self.kind = kind
        self.permissions = permissions
        self.links = links
        self.owner = owner
        self.group = group
        self.size = size
        self.blocks = blocks
        self.deviceNumber = deviceNumber
        self.accessTime = accessTime
        self.modificationTime = modificationTime
        self.changeTime = changeTime
    }
}

/// Attributes, and how long the kernel may use them without asking again.
package struct AttributesReply: Sendable, Hashable {
    package var attributes: NodeAttributes
    package var attributeLifetimeSeconds: Double

    package init(_ attributes: NodeAttributes, attributeLifetimeSeconds: Double) {
        self.attributes = attributes
        self.attributeLifetimeSeconds = attributeLifetimeSeconds
    }
}

/// A name's node. Counts as one lookup. There is no generation: node numbers are never reused.
package struct EntryReply: Sendable, Hashable {
    package var attributes: NodeAttributes
    package var entryLifetimeSeconds: Double
    package var attributeLifetimeSeconds: Double

    package init(_ attributes: NodeAttributes, entryLifetimeSeconds: Double, attributeLifetimeSeconds: Double) {
        self.attributes = attributes
        self.entryLifetimeSeconds = entryLifetimeSeconds
        self.attributeLifetimeSeconds = attributeLifetimeSeconds
    }
}

package enum LookupReply: Sendable, Hashable {
    case found(EntryReply)
    /// There is no such name, and the kernel may rely on it for that long. (`Failure(.notFound)` is not remembered.)
    case absent(lifetimeSeconds: Double)
}

/// How a file is opened.
package struct OpenRequest: Sendable, Hashable {
    package enum Access: Sendable, Hashable { case read, write, readWrite }

    /// As open(2) has them. O_CREAT and O_EXCL are never set in `open`.
    package var flags: Int32
    /// With O_TRUNC: the caller's truncation clears set-user-ID and, on an executable, set-group-ID (HANDLE_KILLPRIV_V2).
    package var clearsSetID: Bool

    package init(flags: Int32, clearsSetID: Bool = false) {
        self.flags = flags
        self.clearsSetID = clearsSetID
    }

    package var access: Access {
        switch flags & 3 {
        case 0: .read
        case 1: .write
        default: .readWrite
        }
    }
    package var isWritable: Bool { access != .read }
    /// O_TRUNC: the size becomes 0 in the same operation.
    package var truncates: Bool { flags & 0o1000 != 0 }
    package var appends: Bool { flags & 0o2000 != 0 }
    /// O_NONBLOCK.
    package var isNonblocking: Bool { flags & 0o4000 != 0 }
    /// O_NOATIME.
    package var sparesAccessTime: Bool { flags & 0o1_000_000 != 0 }
}

/// An open file. With `backing` the kernel reads and writes the registered file itself and `read` and `write` are not
/// called for this handle; all opens of one node share one mode (see `OpenMode`).
///
/// The kernel clears no set-ID bits on a passthrough write: a file that has them is opened for writing without `backing`.
package struct OpenReply: Sendable, Hashable {
    package var handle: HandleID
    package var backing: BackingID?
    /// Pages the kernel has of the node stay valid. Has no meaning with `backing`.
    package var keepsCache: Bool
    /// The kernel keeps no pages. Has no meaning with `backing`.
    package var isDirect: Bool

    package init(handle: HandleID, backing: BackingID? = nil, keepsCache: Bool = false, isDirect: Bool = false) {
        self.handle = handle
        self.backing = backing
        self.keepsCache = keepsCache
        self.isDirect = isDirect
    }
}

package struct CreateReply: Sendable, Hashable {
    package var entry: EntryReply
    package var opened: OpenReply

    package init(entry: EntryReply, opened: OpenReply) {
        self.entry = entry
        self.opened = opened
    }
}

/// One line of a listing.
package struct FolderEntry: Sendable, Hashable {
    /// May be `.` or `..`, which the file system lists itself; they never carry an `entry`.
    package var name: [UInt8]
    package var node: NodeID
    package var kind: NodeKind
    /// Where a reader that has seen this line goes on. Not 0.
    package var nextCookie: UInt64
    /// Only when attributes were asked for, and only where they are at hand; counts as one lookup when `add` takes it.
    package var entry: EntryReply?

    package init(name: [UInt8], node: NodeID, kind: NodeKind, nextCookie: UInt64, entry: EntryReply? = nil) {
        self.name = name
        self.node = node
        self.kind = kind
        self.nextCookie = nextCookie
        self.entry = entry
    }
}

/// The answer to `read`. Fewer bytes than were asked for mean the end of the file.
package enum ReadReply: Sendable {
    /// From an open file; the descriptor stays valid until the call of `reply` returns. Stops at the file's end.
    case descriptor(Int32, range: ByteRange)
    case bytes([UInt8])
}

/// What `setattr` changes; nil leaves as it is.
package struct AttributeChanges: Sendable, Hashable {
    package enum Time: Sendable, Hashable {
        /// The time of the request, as the file system's clock has it.
        case now
        case at(Timestamp)
    }

    /// 0 to 0o7777.
    package var permissions: UInt32?
    package var owner: UInt32?
    package var group: UInt32?
    package var size: UInt64?
    package var accessTime: Time?
    package var modificationTime: Time?
    package var changeTime: Timestamp?
    /// Clear set-user-ID and, on an executable, set-group-ID: asked for with a change of size (HANDLE_KILLPRIV_V2).
    /// A change of owner or group clears them on a file always, whether this is set or not.
    package var clearsSetID: Bool

    package init(
        permissions: UInt32? = nil, owner: UInt32? = nil, group: UInt32? = nil, size: UInt64? = nil, accessTime: Time? = nil,
        modificationTime: Time? = nil, changeTime: Timestamp? = nil, clearsSetID: Bool = false
    ) {
        self.permissions = permissions
        self.owner = owner
        self.group = group
        self.size = size
        self.accessTime = accessTime
        self.modificationTime = modificationTime
        self.changeTime = changeTime
        self.clearsSetID = clearsSetID
    }
}

/// setxattr(2)'s flags.
package enum AttributeWriteMode: Sendable, Hashable {
    case any
    /// Fails with `.exists` when the attribute is there.
    case createOnly
    /// Fails with `.noAttribute` when it is not.
    case replaceOnly
}

/// lseek(2)'s SEEK_DATA and SEEK_HOLE; the other kinds the kernel answers itself.
package enum SeekTarget: Sendable, Hashable { case data, hole }

/// statvfs(3).
package struct FileSystemSpace: Sendable, Hashable {
    /// In bytes; also the unit of the three counts below.
    package var blockSize: UInt32
    package var blocks: UInt64
    package var blocksFree: UInt64
    /// Free to ordinary users.
    package var blocksAvailable: UInt64
    package var nodes: UInt64
    package var nodesFree: UInt64

    package init(
        blockSize: UInt32, blocks: UInt64, blocksFree: UInt64, blocksAvailable: UInt64, nodes: UInt64, nodesFree: UInt64
    ) {
        self.blockSize = blockSize
        self.blocks = blocks
        self.blocksFree = blocksFree
        self.blocksAvailable = blocksAvailable
        self.nodes = nodes
        self.nodesFree = nodesFree
    }
}

/// Where a range starts in an open file.
package struct FilePosition: Sendable, Hashable {
    package var node: NodeID
    package var handle: HandleID
    package var offset: UInt64
    /// Of a write: at the end, of which the kernel thinks that it is at `offset`.
    package var appends = false

    package init(node: NodeID, handle: HandleID, offset: UInt64) {
        self.node = node
        self.handle = handle
        self.offset = offset
    }

    /// By a file system that knows the node under another number.
    func of(_ node: NodeID) -> FilePosition {
        var position = self
        position.node = node
        return position
    }
}
