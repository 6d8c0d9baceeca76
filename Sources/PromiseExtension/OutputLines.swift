/// Cuts what a program writes on its outputs into lines for the log: long lines are cut, and of a flood only the beginning of
/// each interval is kept. Pure; times are readings of a clock that never jumps.
package struct OutputLines: Sendable {
    package static let lineByteCountMax = 1024
    package static let linesMax = 100
    package static let interval = Duration.seconds(10)

    private var rest: [UInt8] = []
    private var isCut = false
    private var intervalStart = Duration.zero
    private var lineCount = 0
    private var droppedCount = 0

    package init() {}

    /// Lines that are complete now, without their ends.
    package mutating func take(_ bytes: some Sequence<UInt8>, now: Duration) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        if now - intervalStart >= OutputLines.interval {
            if droppedCount > 0 { lines.append(Array("(\(droppedCount) more lines were left out)".utf8)) }
            (intervalStart, lineCount, droppedCount) = (now, 0, 0)
        }
        for byte in bytes {
            if byte == 0x0A {
                append(to: &lines)
            } else if rest.count < OutputLines.lineByteCountMax {
                rest.append(byte)
            } else {
                isCut = true
            }
        }
        return lines
    }

    /// What was written without an end of line before the program ended.
    package mutating func end() -> [[UInt8]] {
        var lines: [[UInt8]] = []
        if !rest.isEmpty { append(to: &lines) }
        return lines
    }

    private mutating func append(to lines: inout [[UInt8]]) {
        if lineCount < OutputLines.linesMax {
            lines.append(isCut ? rest + Array("…".utf8) : rest)
            lineCount += 1
        } else {
            droppedCount += 1
        }
        rest.removeAll(keepingCapacity: true)
        isCut = false
    }
}
