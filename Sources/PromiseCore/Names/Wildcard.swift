/// Whether bytes match a pattern: `*` stands for any bytes, `?` for one byte, everything else for itself.
///
/// Without recursion on `*`: remembers the last star and extends it by one byte on a mismatch.
func wildcardMatch(pattern: ArraySlice<UInt8>, name: ArraySlice<UInt8>) -> Bool {
    var patternIndex = pattern.startIndex
    var nameIndex = name.startIndex
    var star: (pattern: Int, name: Int)?
    while nameIndex < name.endIndex {
        if patternIndex < pattern.endIndex, pattern[patternIndex] == UInt8(ascii: "*") {
            star = (patternIndex, nameIndex)
            patternIndex += 1
        } else if patternIndex < pattern.endIndex,
            pattern[patternIndex] == UInt8(ascii: "?") || pattern[patternIndex] == name[nameIndex]
        {
            patternIndex += 1
            nameIndex += 1
        } else if let last = star {
            star = (last.pattern, last.name + 1)
            patternIndex = last.pattern + 1
            nameIndex = last.name + 1
        } else {
            return false
        }
    }
    return pattern[patternIndex...].allSatisfy { $0 == UInt8(ascii: "*") }
}
