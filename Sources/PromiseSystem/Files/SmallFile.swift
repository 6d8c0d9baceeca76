import Glibc

/// The start of a small file, as of /proc, /sys and /etc, at most `countMax` bytes; nil when it cannot be read.
///
/// Read until nothing comes: a file of /proc gives a page at a time and has no size (proc(5)).
package func readSmallFile(_ path: [UInt8], countMax: Int = 65_536) -> [UInt8]? {
    guard let file = try? Descriptor.open(path, flags: O_RDONLY, label: "system.smallFile.open") else { return nil }
    return readSmallFile(file, countMax: countMax)
}

/// The same of what is open.
func readSmallFile(_ file: borrowing Descriptor, countMax: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: min(countMax, 4096))
    var count = 0
    while count < countMax {
        if count == bytes.count { bytes += [UInt8](repeating: 0, count: min(bytes.count, countMax - bytes.count)) }
        let number = file.number
        let read: Int? = bytes.withUnsafeMutableBytes { buffer in
            let room = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
            return try? call("system.smallFile.read") { Glibc.read(number, room.baseAddress, room.count) }
        }
        guard let read else { return nil }
        if read == 0 { break }
        count += read
    }
    return Array(bytes[..<count])
}

/// Puts other bytes in the place of a small file, which only its owner may read: the old ones or these are there after a
/// power cut. Blocking.
package func replaceSmallFile(_ path: [UInt8], with bytes: [UInt8]) throws(SystemError) {
    let aside = path + Array(".new".utf8)
    do throws(SystemError) {
        let flags = O_WRONLY | O_CREAT | O_TRUNC
        let file = try Descriptor.open(aside, flags: flags, mode: 0o600, label: "system.smallFile.create")
        try writeFully(file.number, bytes, at: 0, label: "system.smallFile.write")
        try synchronize(file.number, dataOnly: false, label: "system.smallFile.synchronize")
        try rename(aside, to: path, label: "system.smallFile.rename")
    } catch {
        _ = try? unlink(aside, label: "system.smallFile.remove")
        throw error
    }
}
