import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem

/// A place on a mount, reached from the mount's root by names alone. An application that may write
/// there can make a link of any of these names at any moment, and what that leads to would be read,
/// or written, with the rights of the person.
struct MountPlace: Sendable {
    /// The mount point.
    let root: [UInt8]
    /// From there; empty for the root.
    private(set) var path: [UInt8]

    /// Of an absolute path that the mount has.
    init(_ absolute: [UInt8], on mount: MountEntry) {
        root = mount.mountPoint
        path = Array(absolute.dropFirst(root.count).drop { $0 == 0x2F })
    }

    var absolutePath: [UInt8] {
        if path.isEmpty { return root }
        return (root == [0x2F] ? root : root + [0x2F]) + path
    }

    var name: [UInt8] { path.split(separator: 0x2F).last.map { Array($0) } ?? [] }

    /// The root is its own.
    var parent: MountPlace {
        var parent = self
        parent.path = Array(path[..<(path.lastIndex(of: 0x2F) ?? 0)])
        return parent
    }

    /// For what is made in it.
    func openFolder() throws(PromiseError) -> Descriptor { try open(O_DIRECTORY) }

    /// Refuses a link, and what is no document, without opening it.
    func openDocument() throws(PromiseError) -> Descriptor {
        let found = try open(O_NOFOLLOW)
        guard try kind(of: found) == .file else {
            throw PromiseError(.local, "\(shown) is no document", exitStatus: 1)
        }
        do throws(SystemError) {
            // The file that was looked at, whatever has its name by now.
            return try Descriptor.open(
                Array("/proc/self/fd/\(found.number)".utf8), flags: O_RDONLY | O_NOCTTY,
                label: "picker.document.open")
        } catch {
            throw FileWork.failure("\(shown) cannot be read", error.errno)
        }
    }

    /// For what is moved as a whole.
    func requireDocumentOrFolder() throws(PromiseError) {
        let kind = try kind(of: try open(O_NOFOLLOW))
        guard kind == .file || kind == .folder else {
            throw PromiseError(.local, "\(shown) is neither a document nor a folder", exitStatus: 1)
        }
    }

    private func kind(of found: borrowing Descriptor) throws(PromiseError) -> NodeKind {
        let kind: NodeKind
        do throws(SystemError) {
            kind = try FileStatus.of(descriptor: found.number, label: "picker.place.status").kind
        } catch {
            throw FileWork.failure("\(shown) cannot be read", error.errno)
        }
        if kind == .link { throw leadsElsewhere }
        return kind
    }

    /// By its names, and for no more than to know and reach it (O_PATH).
    private func open(_ flags: CInt) throws(PromiseError) -> Descriptor {
        do throws(SystemError) {
            let top = try Descriptor.open(
                root, flags: openPathOnly | O_DIRECTORY, label: "picker.mount.open")
            if path.isEmpty { return top }
            return try Descriptor.open(
                path, beneath: top.number, flags: openPathOnly | flags, label: "picker.place.open")
        } catch {
            if error.errno == ELOOP { throw leadsElsewhere }
            throw FileWork.failure("\(shown) cannot be opened", error.errno)
        }
    }

    private var shown: String { FileWork.shown(absolutePath) }

    private var leadsElsewhere: PromiseError {
        PromiseError(
            .local, "\(shown) is a link, or leads through one; say what it leads to", exitStatus: 5)
    }
}
