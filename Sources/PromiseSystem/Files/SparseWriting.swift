import Glibc
package import PromiseCore

// Bytes on their way into a file that keep what was a hole a hole: a disk image takes the room of
// what is in it.

/// So many zero bytes are a hole, at a place of the file that is a multiple of them.
private let holeByteCount: UInt64 = 64 << 10

/// As `copyBytes`; what is a hole in the source is one in the target, whatever was there. The
/// target is not made longer by a hole at its end.
package func copyKeepingHoles(
    from source: CInt, at sourceOffset: UInt64, to target: CInt, at targetOffset: UInt64,
    count: UInt64,
    label: StaticString
) throws(SystemError) -> UInt64 {
    let end = sourceOffset + count
    var position = sourceOffset
    while position < end {
        let data = nextData(in: source, from: position, to: end)
        let hole = ByteRange(
            offset: targetOffset + (position - sourceOffset), count: data.lower - position)
        if !hole.isEmpty {
            // A file that ends early is told by what is taken from it.
            let size = try FileStatus.of(descriptor: source, label: label).size
            if size < data.lower { return max(size, position) - sourceOffset }
            guard try makeHole(target, hole, label) else {
                let from = position - sourceOffset
                return from
                    + (try copyBytes(
                        from: source, at: position, to: target, at: targetOffset + from,
                        count: end - position,
                        label: label))
            }
        }
        guard !data.isEmpty else { break }
        let from = data.lower - sourceOffset
        let copied = try copyBytes(
            from: source, at: data.lower, to: target, at: targetOffset + from, count: data.count,
            label: label)
        guard copied == data.count else { return from + copied }
        position = data.upper
    }
    return count
}

/// As `writeFully`; large runs of zero bytes become holes.
package func writeKeepingHoles(
    _ descriptor: CInt, _ bytes: UnsafeRawBufferPointer, at offset: UInt64, label: StaticString
) throws(SystemError) {
    var position = 0
    while position < bytes.count {
        var end = position
        while let next = zeroBlock(bytes, end, offset) { end = next }
        if end > position {
            let hole = ByteRange(offset: offset + UInt64(position), count: UInt64(end - position))
            if try makeHole(descriptor, hole, label) {
                position = end
                continue
            }
            return try write(descriptor, bytes, position..<bytes.count, offset, label)
        }
        while end < bytes.count, zeroBlock(bytes, end, offset) == nil {
            end = min(
                bytes.count, end + Int(holeByteCount - (offset + UInt64(end)) % holeByteCount))
        }
        try write(descriptor, bytes, position..<end, offset, label)
        position = end
    }
}

private func write(
    _ descriptor: CInt, _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, _ offset: UInt64,
    _ label: StaticString
) throws(SystemError) {
    let piece = UnsafeRawBufferPointer(rebasing: bytes[range])
    try writeFully(descriptor, piece, at: offset + UInt64(range.lowerBound), label: label)
}

/// Where the block of zero bytes that begins here ends; nil when there is none.
private func zeroBlock(_ bytes: UnsafeRawBufferPointer, _ start: Int, _ offset: UInt64) -> Int? {
    let (place, count) = (offset + UInt64(start), Int(holeByteCount))
    guard place % holeByteCount == 0, bytes.count - start >= count, bytes[start] == 0,
        bytes[start + count - 1] == 0,
        let first = bytes.baseAddress
    else { return nil }
    // All are as the one before them.
    return memcmp(first + start, first + start + 1, count - 1) == 0 ? start + count : nil
}

/// The first range from here that is no hole (lseek(2), SEEK_DATA and SEEK_HOLE); empty, at the
/// end, when all is a hole.
package func nextData(in source: CInt, from position: UInt64, to end: UInt64) -> ByteRange {
    let (seekData, seekHole): (CInt, CInt) = (3, 4)
    guard let place = off_t(exactly: position) else { return ByteRange(position, end) }
    let start = lseek(source, place, seekData)
    // ENXIO: no data up to the end. Anything else: the file system does not tell, so all of it is
    // data.
    if start < 0 { return errno == ENXIO ? ByteRange(end, end) : ByteRange(position, end) }
    guard UInt64(start) < end else { return ByteRange(end, end) }
    let stop = lseek(source, start, seekHole)
    return ByteRange(UInt64(start), stop < 0 ? end : min(UInt64(stop), end))
}

/// False where the file system has no holes; then zero bytes are written.
private func makeHole(
    _ descriptor: CInt, _ range: ByteRange, _ label: StaticString
) throws(SystemError) -> Bool {
    do throws(SystemError) {
        try punchHole(descriptor, range, label: label)
        return true
    } catch {
        guard [EOPNOTSUPP, ENOSYS, EINVAL, EPERM].contains(error.errno) else { throw error }
        return false
    }
}
