/// What a provider suffers while others are tested, from lines of `key=value`:
///
///     delay=10s            every call takes this long longer (also 500ms)
///     offline=true         every call fails at once, as without a network
///     hang=true            calls do not return until they are cancelled or this changes
///     fail=3               every third call fails, and may be tried again
///     bandwidth=100000     bytes per second of a content, down and up
///     short=true           a fetch brings half of what was asked for, and says that it is whole
///     stale=true           a fetch says that the version is another one
///     only=fetchContents,enumerateItems     the calls all of this is for; all when missing
package struct ProviderFaults: Equatable, Sendable {
    package var delay = Duration.zero
    package var isOffline = false
    package var isHanging = false
    package var isShort = false
    package var isStale = false
    package var failurePeriod: Int?
    /// Bytes per second.
    package var bandwidth: UInt64?
    /// Nil for every call.
    package var calls: Set<ProviderCall>?

    package init() {}

    /// Lines that mean nothing do nothing.
    package init(parsing text: String) {
        for line in ProviderFaults.lines(of: text) { _ = take(line) }
    }

    /// A sentence that names the first line that means nothing; nil when each means something.
    package static func problem(in text: String) -> String? {
        var faults = ProviderFaults()
        for (index, line) in lines(of: text).enumerated() where !faults.take(line) {
            let shown = escapedForDisplay(trimmed(line).utf8)
            return "line \(index + 1) means nothing: '\(shown)'; lines are as delay=2s, offline=true, hang=true, fail=3, "
                + "bandwidth=100000, short=true, stale=true, only=fetchContents,create"
        }
        return nil
    }

    package func concern(_ call: ProviderCall) -> Bool { calls?.contains(call) ?? true }

    private static func lines(of text: String) -> [Substring] {
        text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    }

    /// False for a line that means nothing. An empty one and one after `#` are for people.
    private mutating func take(_ line: Substring) -> Bool {
        let line = trimmed(line)
        if line.isEmpty || line.hasPrefix("#") { return true }
        let parts = line.split(separator: "=", maxSplits: 1).map(trimmed)
        guard parts.count == 2 else { return false }
        let value = parts[1]
        switch parts[0] {
        case "delay": return ProviderFaults.set(&delay, ProviderFaults.duration(value))
        case "offline": return ProviderFaults.set(&isOffline, ProviderFaults.flag(value))
        case "hang": return ProviderFaults.set(&isHanging, ProviderFaults.flag(value))
        case "short": return ProviderFaults.set(&isShort, ProviderFaults.flag(value))
        case "stale": return ProviderFaults.set(&isStale, ProviderFaults.flag(value))
        case "fail": failurePeriod = Int(value).flatMap { $0 > 0 ? $0 : nil }
        case "bandwidth": bandwidth = UInt64(value).flatMap { $0 > 0 ? $0 : nil }
        case "only":
            let names = value.split(separator: ",").map { ProviderCall(rawValue: String(trimmed($0))) }
            calls = Set(names.compactMap { $0 })
            return !names.contains(nil)
        default: return false
        }
        return parts[0] == "fail" ? failurePeriod != nil : bandwidth != nil
    }

    private static func set<Value>(_ place: inout Value, _ value: Value?) -> Bool {
        if let value { place = value }
        return value != nil
    }

    private static func flag(_ text: Substring) -> Bool? { ["true": true, "false": false][text] }

    private static func duration(_ text: Substring) -> Duration? {
        if text.hasSuffix("ms") { return Int64(text.dropLast(2)).flatMap { $0 >= 0 ? .milliseconds($0) : nil } }
        guard text.hasSuffix("s"), let seconds = Double(text.dropLast()), (0...1e9).contains(seconds) else { return nil }
        return .seconds(seconds)
    }
}

private func trimmed(_ text: Substring) -> Substring {
    var text = text.drop(while: \.isWhitespace)
    while text.last?.isWhitespace == true { text.removeLast() }
    return text
}
