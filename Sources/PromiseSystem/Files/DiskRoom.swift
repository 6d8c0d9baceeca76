import Glibc

/// Bytes that this process can still put on the disk of a folder; 0 where no new file can be made. Nil where it cannot be
/// asked. statvfs(3).
package func roomLeft(at folder: [UInt8]) -> UInt64? {
    var facts = statvfs()
    guard withCPath(folder, { statvfs($0, &facts) }) == 0 else { return nil }
    let isRoot = geteuid() == 0
    // Some count no inodes, and say 0 of 0.
    if facts.f_files > 0, (isRoot ? facts.f_ffree : facts.f_favail) == 0 { return 0 }
    return UInt64(isRoot ? facts.f_bfree : facts.f_bavail).multipliedReportingOverflow(by: UInt64(facts.f_frsize)).partialValue
}
