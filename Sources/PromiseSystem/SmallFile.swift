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
