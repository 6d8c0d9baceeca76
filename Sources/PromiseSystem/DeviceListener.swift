import CPromiseSystem
import Glibc

/// A mount that only a process of another namespace sees.
package struct ForeignMount: Hashable, Sendable {
    /// Its number may be another one's by now: who goes there is to be where `peer` was.
    package let process: Int32
    package let peer: PeerProcess
    package let device: DeviceNumber
}

/// Waits for one peer that hands a device over: a descriptor, with the user and the group of
/// whoever has opened it.
///
/// The socket is in a folder that is shut to others, and gone when somebody came: names of abstract
/// sockets (unix(7)) are in /proc/net/unix for everybody, sandboxes with a network included.
package struct DeviceListener: Sendable {
    private let socket: SharedDescriptor
    private let path: [UInt8]

    /// A peer that waits for its answer. The connection ends with this.
    package struct Handed: Sendable {
        private let line: SharedDescriptor
        /// The peer's, which no other process can be taken for; nil where the kernel has none.
        private let process: SharedDescriptor?
        /// Where it is; nil where the kernel does not say.
        package let peer: PeerProcess?
        /// Whoever takes it closes it.
        package let device: CInt
        package let user: UInt32
        package let group: UInt32
        /// Where the peer sees what it has mounted; nil when it does not, or where that is not known.
        package let mount: ForeignMount?

        fileprivate init(
            _ line: SharedDescriptor, _ process: CInt, _ peer: PeerProcess?, _ device: CInt,
            _ user: UInt32, _ group: UInt32, _ mount: ForeignMount?
        ) {
            self.line = line
            self.process = process < 0 ? nil : SharedDescriptor(Descriptor(adopting: process))
            self.peer = peer
            self.device = device
            self.user = user
            self.group = group
            self.mount = mount
        }

        /// Ends the process that came, and what it has become.
        package func terminate() { if let process { _ = cps_signal_process(process.number, SIGTERM) } }

        /// Nil where the kernel does not tell of it.
        package var end: ProcessEnd? { process.map { ProcessEnd(process: $0) } }

        /// `ok`, or a sentence that says why not. One message, of at most 500 bytes.
        package func answer(_ text: String) {
            let bytes = Array(text.utf8.prefix(500))
            _ = send(line.number, bytes, bytes.count, CInt(MSG_NOSIGNAL))
        }
    }

    /// Of the peer's process, and of what it has become. Keeps no connection open.
    package struct ProcessEnd: Sendable {
        fileprivate let process: SharedDescriptor

        fileprivate init(process: SharedDescriptor) { self.process = process }

        /// Nil where the kernel does not tell of it, or the process has ended.
        package init?(of process: Int32) {
            let number = process > 0 ? cps_process_descriptor(process) : -1
            guard number >= 0 else { return nil }
            self.process = SharedDescriptor(Descriptor(adopting: number))
        }

        /// Blocks until it is there.
        package func wait() {
            var watched = pollfd(fd: process.number, events: Int16(POLLIN), revents: 0)
            while poll(&watched, 1, -1) < 0 && errno == EINTR {}
        }
    }

    /// `path`: of at most 107 bytes, where nothing is.
    package init(path: [UInt8]) throws(SystemError) {
        self.path = path
        let type = CInt(SOCK_SEQPACKET.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        let number = try call("view.socket") { Glibc.socket(AF_UNIX, type, 0) }
        socket = SharedDescriptor(Descriptor(adopting: number))
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard path.count < MemoryLayout.size(ofValue: address.sun_path) else {
            throw SystemError(errno: ENAMETOOLONG, label: "view.path")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let size = MemoryLayout<sockaddr_un>.size
        _ = try call("view.bind") {
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(number, $0, socklen_t(size))
                }
            }
        }
        _ = try call("view.listen") { listen(number, 8) }
    }

    /// Nil when nobody came in time. Whoever has another user, or hands nothing over, is passed over.
    /// `end`: of the one who is to come; nobody is waited for after that. The socket is gone then.
    /// Blocks.
    package func take(within patience: Duration, until end: ProcessEnd? = nil) -> Handed? {
        defer { _ = withCPath(path) { unlink($0) } }
        let deadline = ContinuousClock.now + patience
        while ContinuousClock.now < deadline {
            let left = (deadline - .now).components.seconds + 1
            guard isReadable(socket.number, within: CInt(clamping: left * 1_000), until: end) else { return nil }
            if let handed = takeOne(within: CInt(clamping: left * 1_000)) { return handed }
        }
        return nil
    }

    private func takeOne(within milliseconds: CInt) -> Handed? {
        let number = accept(socket.number, nil, nil)
        guard number >= 0 else { return nil }
        let line = SharedDescriptor(Descriptor(adopting: number))
        _ = fcntl(number, F_SETFD, FD_CLOEXEC)
        guard let peer = peer(number), peer.user == geteuid() || peer.user == 0,
            isReadable(number, within: milliseconds)
        else { return nil }
        // User, group, and the two of what is mounted.
        var numbers: [UInt32] = [0, 0, 0, 0]
        let device = cps_receive_descriptor(number, &numbers, 4)
        guard device >= 0 else { return nil }
        // It waits for its answer, so its number is still its own.
        let process = cps_process_descriptor(peer.process)
        let space = fcntl(process, F_DUPFD_CLOEXEC, 0)
        let place = space < 0 ? nil : PeerProcess.of(pidfd: space, process: peer.process)
        let mounted = DeviceNumber(major: numbers[2], minor: numbers[3])
        let mount = place.flatMap { place in
            mounted.minor == 0 ? nil : ForeignMount(process: peer.process, peer: place, device: mounted)
        }
        return Handed(line, process, place, device, numbers[0], numbers[1], mount)
    }

    private func isReadable(_ number: CInt, within milliseconds: CInt, until end: ProcessEnd? = nil) -> Bool {
        // What is less than zero is not looked at.
        var watched = [number, end?.process.number ?? -1].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        var result: CInt
        repeat { result = poll(&watched, nfds_t(watched.count), milliseconds) } while result < 0 && errno == EINTR
        return result > 0 && watched[0].revents != 0
    }

    /// `struct ucred` of unix(7), which the Glibc module does not show.
    private struct Peer {
        var process: Int32 = 0
        var user: UInt32 = .max
        var group: UInt32 = .max
    }

    private func peer(_ number: CInt) -> Peer? {
        var peer = Peer()
        var size = socklen_t(MemoryLayout<Peer>.size)
        // SO_PEERCRED of socket(7).
        return getsockopt(number, SOL_SOCKET, 17, &peer, &size) == 0 ? peer : nil
    }
}
