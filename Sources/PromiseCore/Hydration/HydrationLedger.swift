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

        fileprivate mutating func add(_ other: Line) {
            fetches = HydrationLedger.sum(fetches, other.fetches)
            bytes = HydrationLedger.sum(bytes, other.bytes)
            refusals = HydrationLedger.sum(refusals, other.refusals)
        }

        fileprivate mutating func remove(_ other: Line) {
            fetches -= min(fetches, other.fetches)
            bytes -= min(bytes, other.bytes)
            refusals -= min(refusals, other.refusals)
        }

        fileprivate var isEmpty: Bool { fetches == 0 && bytes == 0 && refusals == 0 }
    }

    private static let countMax = UInt64.max / 4

    private static func sum(_ one: UInt64, _ other: UInt64) -> UInt64 {
        min(min(one, countMax) + min(other, countMax), countMax)
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

    package var isEmpty: Bool { table.isEmpty }

    package mutating func fetched(_ bytes: UInt64, for program: String) {
        change(program) { $0.bytes = HydrationLedger.sum($0.bytes, bytes) }
    }
    package mutating func began(for program: String) { change(program) { $0.fetches += 1 } }
    package mutating func refused(_ program: String) { change(program) { $0.refusals += 1 } }

    /// What another ledger has counted besides.
    package mutating func add(_ other: HydrationLedger) {
        for line in other.lines { add(line) }
    }

    /// What another ledger has counted of this.
    package mutating func remove(_ other: HydrationLedger) {
        for (program, line) in other.table {
            // It was merged into the others meanwhile.
            let known = table[program] == nil ? HydrationLedger.others : program
            table[known]?.remove(line)
            if table[known]?.isEmpty == true { table[known] = nil }
        }
    }

    /// Counts are bounded, as those of a damaged file may be anything.
    package mutating func add(_ line: Line) {
        change(line.program) { $0.add(line) }
    }

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
            rest.add(line)
            table[line.program] = nil
        }
        table[HydrationLedger.others] = rest
    }
}
