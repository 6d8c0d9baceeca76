import PromiseCore

/// A POSIX ACL as Linux passes it in `system.posix_acl_access` and `system.posix_acl_default`: a version word (2), then
/// entries of tag, permissions and id, little-endian (acl(5), linux/posix_acl_xattr.h).
package struct AccessControlList: Hashable, Sendable {
    package static let accessName = Array("system.posix_acl_access".utf8)
    package static let defaultName = Array("system.posix_acl_default".utf8)

    package struct Line: Hashable, Sendable {
        package var tag: UInt16
        package var permissions: UInt16
        package var id: UInt32
    }

    private enum Tag {
        static let owner: UInt16 = 0x01
        static let group: UInt16 = 0x04
        static let mask: UInt16 = 0x10
        static let other: UInt16 = 0x20
    }

    package var lines: [Line]

    /// Nil when the bytes are not an ACL.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count >= 4, (bytes.count - 4) % 8 == 0, AccessControlList.number(bytes[0..<4]) == 2 else { return nil }
        lines = stride(from: 4, to: bytes.count, by: 8).map { start in
            Line(
                tag: UInt16(AccessControlList.number(bytes[start..<start + 2])),
                permissions: UInt16(AccessControlList.number(bytes[start + 2..<start + 4])),
                id: AccessControlList.number(bytes[start + 4..<start + 8]))
        }
        for required in [Tag.owner, Tag.group, Tag.other] where !lines.contains(where: { $0.tag == required }) { return nil }
    }

    package var bytes: [UInt8] {
        var result: [UInt8] = [2, 0, 0, 0]
        for line in lines {
            for value in [line.tag, line.permissions] { result += [UInt8(value & 0xFF), UInt8(value >> 8)] }
            for shift in [0, 8, 16, 24] { result.append(UInt8(truncatingIfNeeded: line.id >> UInt32(shift))) }
        }
        return result
    }

    /// It says no more than the mode does.
    package var isMinimal: Bool { lines.count == 3 }

    /// The permission bits that `stat` shows: the group bits are the mask's where there is one.
    package var modeBits: UInt32 {
        let group = lines.first { $0.tag == Tag.mask } ?? lines.first { $0.tag == Tag.group }
        return bits(lines.first { $0.tag == Tag.owner }) << 6 | bits(group) << 3 | bits(lines.first { $0.tag == Tag.other })
    }

    /// What chmod(2) does to it.
    package mutating func setMode(_ mode: UInt32) {
        let groupTag = lines.contains { $0.tag == Tag.mask } ? Tag.mask : Tag.group
        for index in lines.indices {
            switch lines[index].tag {
            case Tag.owner: lines[index].permissions = UInt16(mode >> 6 & 7)
            case groupTag: lines[index].permissions = UInt16(mode >> 3 & 7)
            case Tag.other: lines[index].permissions = UInt16(mode & 7)
            default: break
            }
        }
    }

    /// What a new file gets from its folder's default ACL: never more than the mode it was created with.
    package mutating func limit(to mode: UInt32) { setMode(modeBits & mode) }

    private func bits(_ line: Line?) -> UInt32 { UInt32(line?.permissions ?? 0) & 7 }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }
}
