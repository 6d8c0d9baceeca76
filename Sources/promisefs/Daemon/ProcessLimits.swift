import Glibc

/// What getrlimit(2) leaves to a mount. The soft limits of a shell are meant for what it starts, not
/// for a service.
enum ProcessLimits {
    private struct Need {
        var resource: __rlimit_resource_t
        var least: UInt64
        /// Of what there is.
        var sentence: (UInt64) -> String
    }

    private static var needs: [Need] {
        [
            // Every open file of the mount is a descriptor of the daemon's.
            Need(resource: __rlimit_resource_t(RLIMIT_NOFILE.rawValue), least: 96) {
                "only \($0) files may be open here; a mount needs 96, and one for each open file: "
                    + "raise 'ulimit -n'"
            },
            // The journal of the index is some MiB large.
            Need(resource: __rlimit_resource_t(RLIMIT_FSIZE.rawValue), least: 64 << 20) {
                "no file may be larger than \(ByteSize.text($0)) here, which is too little for a "
                    + "mount: raise 'ulimit -f'"
            },
            // Each thread has some MiB of addresses.
            Need(resource: __rlimit_resource_t(RLIMIT_AS.rawValue), least: 1_792 << 20) {
                "only \(ByteSize.text($0)) of addresses may be used here, and a mount needs 2 GiB: "
                    + "raise 'ulimit -v'"
            },
            Need(resource: __rlimit_resource_t(RLIMIT_CPU.rawValue), least: 0) { _ in "" },
        ]
    }

    /// As far as this process may.
    static func raise() {
        for need in needs {
            var limit = rlimit()
            guard getrlimit(need.resource, &limit) == 0 else { continue }
            limit.rlim_cur = limit.rlim_max
            setrlimit(need.resource, &limit)
        }
    }

    /// A mount that dies of its limits could not say why.
    static func check() throws(CommandFailure) {
        raise()
        for need in needs {
            var limit = rlimit()
            guard getrlimit(need.resource, &limit) == 0, limit.rlim_cur < need.least else { continue }
            throw CommandFailure(need.sentence(UInt64(limit.rlim_cur)))
        }
    }
}
