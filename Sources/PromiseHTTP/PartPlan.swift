package import PromiseCore
package import PromiseProvider

/// How a large content is cut into parts.
package struct PartPlan: Sendable, Hashable {
    /// All parts but the last; servers of S3 take none below 5 MiB and no more than 10,000 of them.
    /// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>
    package static let byteCountUsual: UInt64 = 8 << 20
    package static let countMax: UInt64 = 10_000
    static let countWanted: UInt64 = 64
    static let byteCountWantedMax: UInt64 = 16 << 20
    private static let byteCountReadAheadMax: UInt64 = 32 << 20

    package let size: UInt64
    package let partByteCount: UInt64

    package init(size: UInt64, partByteCount: UInt64? = nil) {
        // Each part costs a pause for the server's answer: large contents have larger ones, as far as memory holds two.
        let wanted = min(size / PartPlan.countWanted, PartPlan.byteCountWantedMax)
        let whole = ((max(wanted, PartPlan.least(size)) + (1 << 20) - 1) >> 20) << 20
        self.init(size, partByteCount ?? max(PartPlan.byteCountUsual, whole))
    }

    /// Of parts of that size, unless there would be too many.
    package init(size: UInt64, wanted: UInt64) { self.init(size, max(wanted, PartPlan.least(size))) }

    private init(_ size: UInt64, _ partByteCount: UInt64) {
        precondition(size > 0, "nothing is cut into parts")
        self.size = size
        self.partByteCount = partByteCount
    }

    private static func least(_ size: UInt64) -> UInt64 { (size + countMax - 1) / countMax }

    package var count: Int { Int((size + partByteCount - 1) / partByteCount) }

    /// Of parts from the first one on that so many bytes hold whole.
    package func count(in byteCount: UInt64) -> Int { byteCount >= size ? count : Int(byteCount / partByteCount) }

    /// Of a part, counted from 1.
    package func range(_ number: Int) -> ByteRange {
        let start = UInt64(number - 1) * partByteCount
        return ByteRange(start, min(start + partByteCount, size))
    }

    /// Memory may hold two parts: the next one is read while one is on its way.
    package var readsAhead: Bool { partByteCount <= PartPlan.byteCountReadAheadMax }

    /// Loads and sends the parts from `first` on, one after the other, so that a daemon that is
    /// killed sends less than a part again; the next one is loaded meanwhile, as far as memory
    /// holds two. Throws what the first of them threw.
    package func send<Part: Sendable>(
        from first: Int, load: @Sendable (Int) async -> Result<Part, ProviderError>,
        _ send: (Part, Int) async throws(ProviderError) -> Void
    ) async throws(ProviderError) {
        guard first <= count else { return }
        var current: Result<Part, ProviderError>? = await load(first)
        for number in first...count {
            let next = number + 1
            async let ahead = readsAhead && next <= count ? load(next) : nil
            if let part = current { try await send(part.get(), number) }
            current = await ahead
            if current == nil, next <= count { current = await load(next) }
        }
    }
}
