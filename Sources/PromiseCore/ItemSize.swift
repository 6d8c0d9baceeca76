/// How large an item can be, whatever somebody says.
package enum ItemSize {
    /// 1 EiB. A file here is half of what the kernel counts to at most, so that adding what is near
    /// it passes no limit.
    package static let max: UInt64 = 1 << 60

    /// Of a number in decimal; nil when it is none, or more than any file has.
    package static func read(_ text: some StringProtocol) -> UInt64? {
        guard let size = UInt64(text), size <= max else { return nil }
        return size
    }
}

extension UInt64 {
    /// The sum, or the largest number: sizes come from strangers.
    package func plus(_ other: UInt64) -> UInt64 {
        let (sum, isBeyond) = addingReportingOverflow(other)
        return isBeyond ? .max : sum
    }
}
