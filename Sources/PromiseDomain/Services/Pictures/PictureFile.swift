import PromiseHTTP

/// A whole PNG, as far as can be told without unpacking it (RFC 2083, 3 and 4.1): its chunks follow each other to the end of the
/// file, their checksums are right, and the header says a picture that there can be.
struct PictureFile {
    /// The longer side, in pixels.
    let side: Int

    /// Nil for anything else.
    init?(_ bytes: [UInt8]) {
        guard bytes.starts(with: PictureFile.signature) else { return nil }
        var place = PictureFile.signature.count
        var side: Int?
        var hasData = false
        while true {
            guard let chunk = Chunk(bytes, at: place) else { return nil }
            place = chunk.end
            switch chunk.kind {
            case "IHDR":
                guard side == nil, let found = PictureFile.side(chunk.body) else { return nil }
                side = found
            case "IDAT": hasData = true
            case "IEND":
                guard let side, hasData, chunk.body.isEmpty, place == bytes.count else { return nil }
                self.side = side
                return
            default: break
            }
            // The header is the first one.
            if side == nil { return nil }
        }
    }

    private struct Chunk {
        let kind: String
        let body: ArraySlice<UInt8>
        let end: Int

        init?(_ bytes: [UInt8], at place: Int) {
            guard place + 12 <= bytes.count else { return nil }
            let count = PictureFile.number(bytes[place...])
            guard count <= bytes.count - place - 12 else { return nil }
            end = place + 12 + count
            body = bytes[(place + 8)..<(end - 4)]
            let name = bytes[(place + 4)..<(place + 8)]
            kind = String(decoding: name, as: UTF8.self)
            guard PictureFile.checksum(bytes[(place + 4)..<(end - 4)]) == UInt32(PictureFile.number(bytes[(end - 4)...]))
            else { return nil }
        }
    }

    private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    /// Bits a sample, by colour type.
    private static let depths: [UInt8: Set<UInt8>] = [
        0: [1, 2, 4, 8, 16], 2: [8, 16], 3: [1, 2, 4, 8], 4: [8, 16], 6: [8, 16],
    ]

    private static func side(_ header: ArraySlice<UInt8>) -> Int? {
        guard header.count == 13 else { return nil }
        let rest = Array(header.dropFirst(8))
        let (width, height) = (number(header), number(header.dropFirst(4)))
        // The numbers have 31 bits.
        guard 1...0x7FFF_FFFF ~= width, 1...0x7FFF_FFFF ~= height, depths[rest[1]]?.contains(rest[0]) == true,
            rest[2] == 0, rest[3] == 0, rest[4] <= 1
        else { return nil }
        return max(width, height)
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.prefix(4).reduce(0) { $0 << 8 | Int($1) } }

    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        var check = CyclicRedundancyCheck(.crc32)
        bytes.withUnsafeBytes { check.update($0) }
        return UInt32(number(check.bytes[...]))
    }
}
