import Glibc

/// Copies what a file of `size` bytes holds; what is a hole there is one in the copy, which was empty. False when the source
/// is shorter.
package func copyData(
    from source: CInt, to target: CInt, size: UInt64, label: StaticString
) throws(SystemError) -> Bool {
    guard try FileStatus.of(descriptor: source, label: label).size >= size else { return false }
    var position: UInt64 = 0
    while let data = nextData(in: source, from: position, size: size) {
        let count = data.upperBound - data.lowerBound
        let copied = try copyBytes(
            from: source, at: data.lowerBound, to: target, at: data.lowerBound, count: count, label: label)
        guard copied == count else { return false }
        position = data.upperBound
    }
    try truncate(target, to: size, label: label)
    return true
}

/// The next range that is no hole (lseek(2), SEEK_DATA and SEEK_HOLE, which glibc shows only to GNU sources); nil when only a
/// hole is left.
private func nextData(in source: CInt, from position: UInt64, size: UInt64) -> Range<UInt64>? {
    let (seekData, seekHole): (CInt, CInt) = (3, 4)
    guard position < size else { return nil }
    let start = lseek(source, off_t(position), seekData)
    // ENXIO: no data up to the end. Anything else: the file system does not tell, so all of it is data.
    if start < 0 { return errno == ENXIO ? nil : position..<size }
    guard UInt64(start) < size else { return nil }
    let end = lseek(source, start, seekHole)
    return UInt64(start)..<(end < 0 ? size : min(UInt64(end), size))
}
