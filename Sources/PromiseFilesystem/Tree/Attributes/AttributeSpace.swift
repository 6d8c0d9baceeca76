package import PromiseCore

/// The name spaces of extended attributes that can be set (xattr(7)). A name outside them was kept, and whoever copied the file
/// to another disk was refused there.
package enum AttributeSpace {
    private static let spaces = ["user.", "trusted.", "security."].map { Array($0.utf8) }

    package static func check(_ name: [UInt8]) throws(Failure) {
        if name == AccessControlList.accessName || name == AccessControlList.defaultName { return }
        // Of links, which have none of users'.
        if StayingMarks.isName(name) { return }
        guard let space = spaces.first(where: { name.starts(with: $0) }) else {
            throw Failure(.notSupported, "an attribute's name begins with 'user.', 'trusted.' or 'security.'")
        }
        guard name.count > space.count else { throw Failure(.invalid, "an attribute has a name behind its name space") }
    }
}
