import CFuseTransport
import Glibc
import PromiseCore
import PromiseSystem

extension MountPoint {
    /// Takes a dead mount away. Where this process may, a new one is beneath it before, so that programs meet `ENOTCONN` and
    /// then the new mount, and never the folder below: what `rsync --delete` finds empty there it empties elsewhere.
    ///
    /// Returns the device of the new mount; nil: nothing is mounted any more. Blocking.
    func replaceDeadMount(_ options: MountOptions) throws(Failure) -> CInt? {
        guard geteuid() == 0 else {
            try unmount(lazy: true)
            return nil
        }
        let device = options.domain.withCString { source in
            "promisefs".withCString { subtype in
                var made = ct_mount_options(
                    source: source, subtype: subtype, allows_others: options.allowsOthers,
                    is_read_only: options.isReadOnly, attributes: options.mountAttributes)
                return withCPath(path) { ct_mount_beneath($0, &made) }
            }
        }
        // Only the one on top, which is the dead one.
        guard withCPath(path, { umount2($0, CInt(MNT_DETACH | UMOUNT_NOFOLLOW)) }) == 0 || errno == EINVAL else {
            let reason = String(cString: strerror(errno))
            if device >= 0 { close(device) }
            throw Failure(.busy, "the mount of a daemon that is gone cannot be taken from \(display): \(reason)")
        }
        return device >= 0 ? device : nil
    }
}

extension MountOptions {
    /// As fsmount(2) takes them; devices and set-id bits count only where they were asked for.
    fileprivate var mountAttributes: UInt32 {
        // linux/mount.h
        let (readOnly, noSetID, noDevices, noPrograms, noAccessTime): (UInt32, UInt32, UInt32, UInt32, UInt32) =
            (0x1, 0x2, 0x4, 0x8, 0x10)
        var attributes = noSetID | noDevices
        if isReadOnly { attributes |= readOnly }
        for flag in mountFlags {
            switch flag {
            case "suid": attributes &= ~noSetID
            case "dev": attributes &= ~noDevices
            case "noexec": attributes |= noPrograms
            case "noatime": attributes |= noAccessTime
            default: break
            }
        }
        return attributes
    }
}
