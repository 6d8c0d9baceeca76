/// Who caused how much to be fetched. Bounded: when there are too many programs, the smallest go into one line.
package struct HydrationLedger: Sendable, Hashable {
    package struct Line: Sendable, Hashable {
        package var program: String
        /// How often content was asked for and fetched because of that.
        package var fetches: UInt64 = 0
        package var bytes: UInt64 = 0
        /// How often it was refused to the program.
        package var refusals: UInt64 = 0

        package init(program: String) { self.program = program }
    }

    package static let lineCountMax = 64
    /// What stands for those that have no line of their own.
    package static let others = "(others)"
    /// A process that /proc does not show, e.g. the kernel itself.
    package static let unknown = "(unknown)"
    /// Nobody waits: pinned items, commands, files fetched ahead.
    package static let background = "(background)"

    private var table: [String: Line] = [:]

    package init() {}

    package mutating func fetched(_ bytes: UInt64, for program: String) { change(program) { $0.bytes += bytes } }
    package mutating func began(for program: String) { change(program) { $0.fetches += 1 } }
    package mutating func refused(_ program: String) { change(program) { $0.refusals += 1 } }

    /// Most bytes first.
    package var lines: [Line] {
        table.values.sorted { ($0.bytes, $0.fetches, $1.program) > ($1.bytes, $1.fetches, $0.program) }
    }

    private mutating func change(_ program: String, _ body: (inout Line) -> Void) {
        if table[program] == nil, table.count >= HydrationLedger.lineCountMax { merge() }
        body(&table[program, default: Line(program: program)])
    }

    /// Halves the table.
    private mutating func merge() {
        var rest = table.removeValue(forKey: HydrationLedger.others) ?? Line(program: HydrationLedger.others)
        for line in lines.suffix(HydrationLedger.lineCountMax / 2) {
            rest.fetches += line.fetches
            rest.bytes += line.bytes
            rest.refusals += line.refusals
            table[line.program] = nil
        }
        table[HydrationLedger.others] = rest
    }
}
