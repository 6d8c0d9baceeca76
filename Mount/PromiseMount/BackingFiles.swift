import CFuseTransport
import Glibc
import PromiseCore
import PromiseFilesystem
import Synchronization

/// Registers content files on the session's FUSE descriptor. Every call does nothing once `close` was called.
final class BackingFiles: BackingRegistrar {
    /// The session's descriptor, or nil after the end. Held during the ioctl, which takes about a microsecond, so that the
    /// number cannot be closed and given to another file meanwhile.
    private let descriptor: Mutex<CInt?>

    init(descriptor: CInt) { self.descriptor = Mutex(descriptor) }

    func register(descriptor file: Int32) -> BackingID? {
        descriptor.withLock { descriptor in
            guard let descriptor else { return nil }
            let result = ct_backing_open(descriptor, file)
            return result > 0 ? BackingID(rawValue: result) : nil
        }
    }

    func release(_ backing: BackingID) {
        descriptor.withLock { descriptor in
            guard let descriptor else { return }
            let result = ct_backing_close(descriptor, backing.rawValue)
            precondition(result != -ENOENT, "backing file \(backing.rawValue) was released twice")
        }
    }

    func close() { descriptor.withLock { $0 = nil } }

    /// Why files cannot be registered, found out with a file of no use; nil when they can.
    static func problem(descriptor: CInt, negotiation: ct_negotiation, isWanted: Bool) -> String? {
        guard isWanted else { return "passthrough is turned off by an option" }
        guard negotiation.accepted & Negotiation.passthroughFlag != 0 else {
            return "this kernel does not offer passthrough (it needs Linux 6.9 with CONFIG_FUSE_PASSTHROUGH)"
        }
        let file = ct_probe_file()
        guard file >= 0 else { return "no file to try passthrough with could be made: \(String(cString: strerror(-file)))" }
        defer { _ = Glibc.close(file) }
        let result = ct_backing_open(descriptor, file)
        if result > 0 {
            _ = ct_backing_close(descriptor, result)
            return nil
        }
        if result == -EPERM {
            return "passthrough needs CAP_SYS_ADMIN in this process (root has it)"
        }
        return "the kernel refused a file for passthrough: \(String(cString: strerror(-result)))"
    }
}
