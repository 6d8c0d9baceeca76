/// A cyclic redundancy check as servers of S3 send it with an object: reflected, begun and ended with ones. It finds what a disk
/// or a line breaks, not what somebody means to.
///
/// Eight bytes a step, by eight tables (slicing-by-8, Kounavis and Berry 2008).
package struct CyclicRedundancyCheck: Sendable {
    /// A polynomial, its bits in reverse, and the tables made of it.
    package final class Kind: Sendable {
        /// ISO-HDLC, as zlib has it.
        package static let crc32 = Kind(0xEDB8_8320, byteCount: 4)
        /// Castagnoli's (RFC 3720).
        package static let crc32c = Kind(0x82F6_3B78, byteCount: 4)
        /// Of the NVM Express base specification.
        package static let crc64nvme = Kind(0x9A6C_9329_AC4B_C9B5, byteCount: 8)

        package let byteCount: Int
        /// Eight of 256, one after the other.
        fileprivate let tables: [UInt64]

        private init(_ polynomial: UInt64, byteCount: Int) {
            self.byteCount = byteCount
            var tables: [UInt64] = []
            for byte in UInt64(0)..<256 {
                tables.append((0..<8).reduce(byte) { value, _ in (value >> 1) ^ (value & 1 == 1 ? polynomial : 0) })
            }
            for index in 256..<(8 * 256) {
                let before = tables[index - 256]
                tables.append((before >> 8) ^ tables[Int(before & 0xFF)])
            }
            self.tables = tables
        }
    }

    private let kind: Kind
    private var register: UInt64

    package init(_ kind: Kind) {
        self.kind = kind
        register = UInt64.max >> UInt64(64 - 8 * kind.byteCount)
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        var value = register
        kind.tables.withUnsafeBufferPointer { tables in
            var position = 0
            while position + 8 <= bytes.count {
                var word = value ^ UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self))
                value = 0
                for table in (0..<8).reversed() {
                    value ^= tables[table * 256 + Int(word & 0xFF)]
                    word >>= 8
                }
                position += 8
            }
            while position < bytes.count {
                value = (value >> 8) ^ tables[Int(UInt8(truncatingIfNeeded: value) ^ bytes[position])]
                position += 1
            }
        }
        register = value
    }

    /// Of all bytes so far, the most significant first.
    package var bytes: [UInt8] {
        let value = ~register
        return (0..<kind.byteCount).reversed().map { UInt8(truncatingIfNeeded: value >> UInt64(8 * $0)) }
    }
}
