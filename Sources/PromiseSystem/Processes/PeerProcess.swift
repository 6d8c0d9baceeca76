import Glibc

/// The process at the other end of a Unix socket when it connected, by its pidfd (SO_PEERPIDFD,
/// Linux 6.5): a number may be used again by another process between a look and the next.
package struct PeerProcess: Hashable, Sendable {
    /// SO_PEERPIDFD of socket(7).
    package static let descriptorOption: CInt = 77

    /// Inode of the mount namespace.
    package let mountNamespace: UInt64
    /// Inodes of the user namespace that the mount namespace belongs to, and of those above it that
    /// can be seen from here.
    package let userNamespaces: [UInt64]

    // PIDFD_GET_MNT_NAMESPACE of Linux 6.11; NS_GET_USERNS and NS_GET_PARENT of ioctl_nsfs(2).
    private static let mountNamespaceRequest: UInt = 0xFF03
    private static let userNamespaceRequest: UInt = 0xB701
    private static let parentRequest: UInt = 0xB702

    /// Takes the pidfd, and closes it. `process`: its number, for kernels that do not tell the
    /// namespace of a pidfd; what was read by it counts only if the process lives still. Nil when
    /// the kernel does not say.
    package static func of(pidfd: CInt, process: Int32) -> PeerProcess? {
        let pidfd = Descriptor(adopting: pidfd)
        let told = ioctl(pidfd.number, mountNamespaceRequest, 0)
        if told >= 0 { return PeerProcess(Descriptor(adopting: told)) }
        guard
            let named = try? Descriptor.open(
                Array("/proc/\(process)/ns/mnt".utf8), flags: O_RDONLY, label: "system.peer.namespace"),
            isAlive(pidfd.number)
        else { return nil }
        return PeerProcess(named)
    }

    /// Whether the kernel tells of any peer. Where it does, and says nothing of one, that has ended
    /// or does not let itself be looked at.
    package static let isTold: Bool = {
        var ends: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0
        else { return true }
        let own = Descriptor(adopting: ends[0])
        let other = Descriptor(adopting: ends[1])
        var pidfd: CInt = -1
        var size = socklen_t(MemoryLayout<CInt>.size)
        let result = getsockopt(own.number, SOL_SOCKET, descriptorOption, &pidfd, &size)
        // No other failure says that the kernel does not know the question.
        let isKnown = result == 0 || errno != ENOPROTOOPT
        if result == 0 { close(pidfd) }
        _ = consume other
        return isKnown
    }()

    package static func ofThisProcess() -> PeerProcess? {
        let named = try? Descriptor.open(
            Array("/proc/self/ns/mnt".utf8), flags: O_RDONLY, label: "system.peer.own")
        guard let named else { return nil }
        return PeerProcess(named)
    }

    private init?(_ namespace: consuming Descriptor) {
        guard let inode = PeerProcess.inode(namespace.number) else { return nil }
        mountNamespace = inode
        var found: [UInt64] = []
        var next = ioctl(namespace.number, PeerProcess.userNamespaceRequest, 0)
        // user_namespaces(7): at most 32 deep.
        while next >= 0, found.count < 40 {
            let current = Descriptor(adopting: next)
            if let inode = PeerProcess.inode(current.number) { found.append(inode) }
            next = ioctl(current.number, PeerProcess.parentRequest, 0)
        }
        userNamespaces = found
    }

    private static func inode(_ descriptor: CInt) -> UInt64? {
        try? FileStatus.of(descriptor: descriptor, label: "system.peer.inode").inode
    }

    /// A pidfd can be read when its process has ended (pidfd_open(2)).
    private static func isAlive(_ pidfd: CInt) -> Bool {
        var watched = pollfd(fd: pidfd, events: Int16(POLLIN), revents: 0)
        return poll(&watched, 1, 0) == 0
    }
}
