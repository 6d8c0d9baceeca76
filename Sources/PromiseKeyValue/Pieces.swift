extension Array {
    /// In its order, in pieces of at most `countMax` elements and `byteCountMax` bytes, as `byteCount`
    /// says how many an element takes; what is larger alone is a piece of its own. A record that is too
    /// large for one private object of a provider is kept so.
    package func pieces(
        countMax: Int, byteCountMax: Int, byteCount: (Element) -> Int
    ) -> [ArraySlice<Element>] {
        var pieces: [ArraySlice<Element>] = []
        var (start, bytes) = (0, 0)
        for (index, element) in enumerated() {
            let count = byteCount(element)
            if index > start, index - start >= countMax || bytes + count > byteCountMax {
                pieces.append(self[start..<index])
                (start, bytes) = (index, 0)
            }
            bytes += count
        }
        if start < self.count { pieces.append(self[start...]) }
        return pieces
    }
}
