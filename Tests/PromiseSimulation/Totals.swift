import Glibc
import PromiseSystem

/// What a run has done so far, also in the processes before this one.
///
/// What a machine that is killed had asked for is answered to nobody, and stays in memory with its open files:
/// so a process runs some schedules, and then another one goes on.
struct Totals {
    static let name = "PROMISEFS_SIMULATION_TOTALS"
    static let schedulesPerProcess = 1_000

    var schedules = 0
    var failed = 0
    var steps = 0
    private var before = 0
    private let begun = SystemClock().uptime()

    init(fromBefore text: String?) {
        let numbers = text?.split(separator: ",").compactMap { Int($0) } ?? []
        guard numbers.count == 4 else { return }
        (schedules, failed, steps, before) = (numbers[0], numbers[1], numbers[2], numbers[3])
    }

    private var milliseconds: Int { before + Int((SystemClock().uptime() - begun).milliseconds) }

    func isTimeOver(_ seconds: Int) -> Bool { milliseconds > seconds * 1_000 }

    /// Never returns.
    func goOn(with seed: UInt64, _ count: Int) -> Never {
        setenv(Totals.name, "\(schedules),\(failed),\(steps),\(milliseconds)", 1)
        // What comes later on a command line counts.
        let arguments = CommandLine.arguments + ["--seed", "\(seed)", "--schedules", "\(count)"]
        var pointers = arguments.map { strdup($0) }
        pointers.append(nil)
        // Files that nobody has closed are for this process only.
        for descriptor in 3..<65_536 { close(Int32(descriptor)) }
        execv("/proc/self/exe", pointers)
        fatalError("the simulation cannot go on in another process")
    }

    var text: String {
        "\(schedules) schedules, \(failed) with problems, \(steps) steps, \(milliseconds) ms"
    }
}
