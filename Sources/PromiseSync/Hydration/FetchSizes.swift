/// The sizes that fetching goes by, in bytes. All are multiples of one, so that a simulation has all of it in small.
package struct FetchSizes: Sendable {
    private let unit: UInt64

    package static let usual = FetchSizes(unit: 32 << 10)

    /// A power of two.
    package init(unit: UInt64) {
        precondition(unit.nonzeroBitCount == 1, "blocks begin at multiples of powers of two, not of \(unit)")
        self.unit = unit
    }

    /// Up to this size a file is fetched whole, whatever part of it is read.
    package var smallFileMax: UInt64 { 32 * unit }
    /// Fetches begin and end at multiples of this.
    var block: UInt64 { 4 * unit }
    /// One fetch takes at most this much, so that a cancelled reader wastes little.
    var pieceMax: UInt64 { 128 * unit }
    /// One of many: what is on its way is fetched again when the daemon is killed.
    var farPieceMax: UInt64 { 48 * unit }
    /// Of a file that is read on and on: a request that is slow to begin is worth more then.
    var grownPieceMax: UInt64 { 256 * unit }
    /// Where a request takes long to begin, of a file that is read on and on, and what is fetched
    /// ahead of who reads it.
    var slowPieceMax: UInt64 { 1024 * unit }
    var slowReadAheadMax: UInt64 { 4096 * unit }
    var readAheadMin: UInt64 { 32 * unit }
    /// Who has read no more in order may want no more: the kernel reads so much for a single byte.
    var glanceMax: UInt64 { unit }
    var readAheadMax: UInt64 { 2048 * unit }
}
