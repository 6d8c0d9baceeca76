import Glibc
import Logging
import PromiseCore
import PromiseSystem

/// How far ahead of a reader the kernel reads files that it has to ask us for, and so how large its requests become.
///
/// In INIT a file system can only ask for less than the kernel's 128 KiB (`max_readahead`). Four times that is a quarter of the
/// requests for whoever reads a placeholder from end to end; more gained nothing. Files with passthrough are read ahead as the
/// disk below is set. Source: Documentation/ABI/testing/sysfs-class-bdi.
enum KernelReadAhead {
    private static let kibibytes = 512

    /// For the lifetime of the mount. Only root may; elsewhere the kernel's own stays.
    static func widen(for mountPoint: MountPoint, logger: Logger) {
        guard geteuid() == 0, let mount = try? MountTable.entries().last(where: { $0.mountPoint == mountPoint.path })
        else { return }
        let path = Array("/sys/class/bdi/\(mount.major):\(mount.minor)/read_ahead_kb".utf8)
        do throws(SystemError) {
            let file = try Descriptor.open(path, flags: O_WRONLY, label: "mount.readAhead")
            let text = Array("\(kibibytes)".utf8)
            _ = try call("mount.readAhead") { write(file.number, text, text.count) }
        } catch {
            logger.debug("the kernel reads ahead as it is set", metadata: ["errno": "\(error.errno)"])
        }
    }
}
