import Glibc
import PromiseCore
import PromiseIndex
import PromiseSystem

// Runs schedules, each from a seed of its own, and says which of them found a problem. The same seed does the
// same, byte for byte, in every process.

// Sets and dictionaries have one order then (swift.org/documentation: SWIFT_DETERMINISTIC_HASHING).
if getenv("SWIFT_DETERMINISTIC_HASHING") == nil {
    setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
    execv("/proc/self/exe", CommandLine.unsafeArgv)
}

Index.keepLocksInMemory()
let options = Options(Array(CommandLine.arguments.dropFirst()))
let parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
let runner = Runner(options: options, base: "\(parent)/promisefs-simulation-\(getpid())")
var totals = Totals(fromBefore: getenv(Totals.name).map { String(cString: $0) })
if totals.schedules == 0 {
    say("simulate: --seed \(options.seed) --schedules \(options.schedules) --size \(options.size)")
}
for number in 0..<options.schedules {
    if totals.isTimeOver(options.seconds) { break }
    let seed = options.seed &+ UInt64(number)
    if number == Totals.schedulesPerProcess {
        runner.removeTree()
        totals.goOn(with: seed, options.schedules - number)
    }
    let (schedule, problems) = runner.run(seed, options.reductions)
    totals.schedules += 1
    totals.steps += schedule.simulation.stepCount
    if options.schedules == 1 || !problems.isEmpty {
        let simulation = schedule.simulation
        say("seed \(seed): trace \(simulation.trace.number), \(simulation.stepCount) steps; \(schedule.plan.text)")
    }
    guard !problems.isEmpty else { continue }
    totals.failed += 1
    for problem in problems { say("  \(problem)") }
    if !options.printsTrace { say("  the least: " + runner.shrink(seed)) }
    if options.stops { break }
}
runner.removeTree()
say(totals.text)
exit(totals.failed == 0 ? 0 : 1)
