import CFuseTransport
import Glibc
import PromiseCore
import PromiseFilesystem
import PromiseSystem
import Synchronization

/// Registers content files on the session's FUSE descriptor: by itself where this process has CAP_SYS_ADMIN, else through
/// the backing helper, a program that has it. Every call does nothing once `close` was called.
final class BackingFiles: BackingRegistrar {
    private enum Way {
        /// The session's FUSE descriptor.
        case own(CInt)
        /// A `ct_helper`.
        case helper(OpaquePointer)
    }

    /// Nil after the end, and when the helper has failed. Held while a file is registered, which takes about a microsecond
    /// (by the helper, 20), so that the number cannot be closed and given to another file meanwhile.
    private let way: Mutex<Way?>
    /// Why files cannot be registered; nil when they can.
    let problem: String?

    /// Tries it with a file of no use.
    init(descriptor: CInt, negotiation: ct_negotiation, isWanted: Bool, helper: BackingHelper?) {
        let (found, problem) = BackingFiles.find(descriptor, negotiation, isWanted, helper)
        way = Mutex(found)
        self.problem = problem
    }

    func register(descriptor file: Int32) -> BackingID? {
        way.withLock { way in
            let result: Int32
            switch way {
            case .own(let descriptor): result = ct_backing_open(descriptor, file)
            case .helper(let helper):
                result = ct_helper_open(helper, file)
                // Without its answer nothing is known of it. The files go on through the daemon.
                if result == -EPIPE || result == -ETIMEDOUT {
                    ct_helper_stop(helper)
                    way = nil
                }
            case nil: return nil
            }
            return result > 0 ? BackingID(rawValue: result) : nil
        }
    }

    func release(_ backing: BackingID) {
        way.withLock { way in
            let result: Int32
            switch way {
            case .own(let descriptor): result = ct_backing_close(descriptor, backing.rawValue)
            case .helper(let helper): result = ct_helper_close(helper, backing.rawValue)
            case nil: return
            }
            precondition(result != -ENOENT, "backing file \(backing.rawValue) was released twice")
        }
    }

    func close() {
        way.withLock { way in
            if case .helper(let helper) = way { ct_helper_stop(helper) }
            way = nil
        }
    }

    // MARK: Finding a way

    private static func find(
        _ descriptor: CInt, _ negotiation: ct_negotiation, _ isWanted: Bool, _ helper: BackingHelper?
    ) -> (Way?, String?) {
        guard isWanted else { return (nil, "passthrough is turned off by an option") }
        guard negotiation.accepted & Negotiation.passthroughFlag != 0 else {
            return (nil, "this kernel does not offer passthrough (it needs Linux 6.9 with CONFIG_FUSE_PASSTHROUGH)")
        }
        let file = ct_probe_file()
        guard file >= 0 else { return (nil, "no file to try passthrough with could be made: \(reason(-file))") }
        defer { _ = Glibc.close(file) }
        let result = ct_backing_open(descriptor, file)
        if result > 0 {
            _ = ct_backing_close(descriptor, result)
            return (.own(descriptor), nil)
        }
        guard result == -EPERM else { return (nil, "the kernel refused a file for passthrough: \(reason(-result))") }
        guard let helper else {
            return (nil, "passthrough needs CAP_SYS_ADMIN (root has it) or promisefs-backing with that capability")
        }
        return start(helper, descriptor)
    }

    private static func start(_ helper: BackingHelper, _ descriptor: CInt) -> (Way?, String?) {
        var started: OpaquePointer?
        let result: Int32
        do throws(SystemError) {
            let store = try Descriptor.open(helper.store, flags: O_RDONLY | O_DIRECTORY, label: "mount.helper.store")
            result = (helper.path + [0]).withUnsafeBytes {
                ct_helper_start($0.bindMemory(to: CChar.self).baseAddress!, descriptor, store.number, &started)
            }
        } catch {
            return (nil, "the content store could not be shown to promisefs-backing: \(reason(error.errno))")
        }
        if result == 0, let started { return (.helper(started), nil) }
        if result == -EPIPE || result == -ECONNRESET {
            return (nil, "promisefs-backing has no CAP_SYS_ADMIN; as root: setcap cap_sys_admin+ep \(helper.displayPath)")
        }
        return (nil, "promisefs-backing could not be started: \(reason(-result))")
    }

    private static func reason(_ code: CInt) -> String { String(cString: strerror(code)) }
}

/// The program that registers content files for an ordinary user (Mount/BackingHelper).
package struct BackingHelper: Sendable, Equatable {
    /// Bytes of the path of the executable.
    package var path: [UInt8]
    /// The folder of the content store: the helper registers nothing outside.
    package var store: [UInt8]

    package init(path: [UInt8], store: [UInt8]) {
        self.path = path
        self.store = store
    }

    var displayPath: String { String(decoding: path, as: UTF8.self) }
}
