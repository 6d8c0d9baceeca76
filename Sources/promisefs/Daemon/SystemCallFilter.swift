import Glibc

/// The filter of system calls that bubblewrap puts on an application (seccomp(2)): what reaches past
/// its namespaces, or has often been a way out of them, fails with EPERM.
///
/// Keys of the kernel's keyrings belong to the user, whatever the namespace: keyrings(7).
enum SystemCallFilter {
    /// The numbers are those of the kernel's tables, by architecture: add_key, request_key, keyctl,
    /// open_by_handle_at, userfaultfd, bpf, perf_event_open, io_uring_setup.
    #if arch(x86_64)
        private static let architecture: UInt32 = 0xC000_003E
        static let refused: [UInt32] = [248, 249, 250, 304, 323, 321, 298, 425]
    #elseif arch(arm64)
        private static let architecture: UInt32 = 0xC000_00B7
        static let refused: [UInt32] = [217, 218, 219, 265, 282, 280, 241, 425]
    #else
        private static let architecture: UInt32 = 0
        static let refused: [UInt32] = []
    #endif

    /// Numbers from here on are those of x32, a second table of the same machine.
    private static let secondTable: UInt32 = 0x4000_0000

    // linux/filter.h and linux/seccomp.h.
    private static let load: UInt16 = 0x20
    private static let jumpIfEqual: UInt16 = 0x15
    private static let jumpIfNotBelow: UInt16 = 0x35
    private static let answer: UInt16 = 0x06
    private static let allow: UInt32 = 0x7FFF_0000
    private static let fail: UInt32 = 0x0005_0000

    /// The program as the kernel reads it: an array of `struct sock_filter`.
    static var program: [UInt8] {
        var bytes: [UInt8] = []
        func add(_ code: UInt16, _ yes: UInt8, _ no: UInt8, _ value: UInt32) {
            withUnsafeBytes(of: code) { bytes += $0 }
            bytes += [yes, no]
            withUnsafeBytes(of: value) { bytes += $0 }
        }
        // struct seccomp_data: the number at 0, the architecture at 4.
        add(load, 0, 0, 4)
        add(jumpIfEqual, 1, 0, architecture)
        add(answer, 0, 0, fail | UInt32(ENOSYS))
        add(load, 0, 0, 0)
        add(jumpIfNotBelow, 0, 1, secondTable)
        add(answer, 0, 0, fail | UInt32(ENOSYS))
        for (index, number) in refused.enumerated() {
            add(jumpIfEqual, UInt8(refused.count - index), 0, number)
        }
        add(answer, 0, 0, allow)
        add(answer, 0, 0, fail | UInt32(EPERM))
        return bytes
    }

    /// A pipe that has the filter, which a program started by exec(3) inherits; nil where this machine
    /// has none.
    static func descriptor() -> CInt? {
        var ends: [CInt] = [-1, -1]
        guard !refused.isEmpty, pipe(&ends) == 0 else { return nil }
        defer { close(ends[1]) }
        let bytes = program
        // Far less than a pipe holds.
        if write(ends[1], bytes, bytes.count) == bytes.count { return ends[0] }
        close(ends[0])
        return nil
    }
}
