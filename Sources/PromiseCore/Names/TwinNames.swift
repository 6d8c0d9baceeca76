extension FileName {
    /// Storage that does not tell upper from lower case, or one form of Unicode's letters from
    /// another, takes both for one name.
    package func isTwin(of other: FileName) -> Bool {
        guard self != other, let own = folded, let others = other.folded else { return false }
        // Strings that differ in the form of letters only are equal.
        return own == others
    }

    /// Nil for what is no UTF-8, which nobody folds.
    private var folded: String? { String(validating: bytes, as: UTF8.self)?.lowercased() }

    /// A twin of it; nil where there is none.
    package var twin: FileName? {
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        for other in [text.uppercased(), text.lowercased()] {
            if let name = FileName(other), name.isTwin(of: self) { return name }
        }
        return nil
    }
}
