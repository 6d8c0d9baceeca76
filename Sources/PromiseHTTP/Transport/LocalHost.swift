import Glibc

/// Hosts that are this machine, whatever its network is like.
package enum LocalHost {
    /// An address of 127.0.0.0/8, `::1`, or `localhost`; literally, so that no resolver has a say in it.
    package static func isLoopback(_ host: String) -> Bool {
        let bare = bare(host)
        // RFC 6761: no other host is called so.
        if bare.lowercased() == "localhost" { return true }
        var four = in_addr()
        // Only four numbers with points between them are taken, so that `127.1` or `0177.0.0.1` is nobody's trick.
        if inet_pton(AF_INET, bare, &four) == 1 { return UInt32(bigEndian: four.s_addr) >> 24 == 127 }
        var six = in6_addr()
        guard inet_pton(AF_INET6, bare, &six) == 1 else { return false }
        return withUnsafeBytes(of: six) { $0.dropLast().allSatisfy { $0 == 0 } && $0.last == 1 }
    }

    /// An address of IPv6 without the brackets that a URL has around it.
    package static func bare(_ host: String) -> String {
        host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    }
}
