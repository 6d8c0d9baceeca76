import Glibc
import PromiseCore
import PromiseSystem

// Runs schedules, each from a seed of its own, and says which of them found a problem. The same seed does the
// same, byte for byte, in every process.

// Sets and dictionaries have one order then (swift.org/documentation: SWIFT_DETERMINISTIC_HASHING).
if getenv("SWIFT_DETERMINISTIC_HASHING") == nil {
    setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
    execv("/proc/self/exe", CommandLine.unsafeArgv)
}

let options = Options(Array(CommandLine.arguments.dropFirst()))
let parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
let runner = Runner(options: options, base: "\(parent)/promisefs-simulation-\(getpid())")
let begun = SystemClock().uptime()
var (done, failed, steps) = (0, 0, 0)
say("simulate: --seed \(options.seed) --schedules \(options.schedules) --size \(options.size)")
for number in 0..<options.schedules {
    if SystemClock().uptime() - begun > .seconds(options.seconds) { break }
    let seed = options.seed &+ UInt64(number)
    let (schedule, problems) = runner.run(seed, options.reductions)
    done += 1
    steps += schedule.simulation.stepCount
    if options.schedules == 1 || !problems.isEmpty {
        let simulation = schedule.simulation
        say("seed \(seed): trace \(simulation.trace.number), \(simulation.stepCount) steps; \(schedule.plan.text)")
    }
    guard !problems.isEmpty else { continue }
    failed += 1
    for problem in problems { say("  \(problem)") }
    if !options.printsTrace { say("  the least: " + runner.shrink(seed)) }
    if options.stops { break }
}
runner.removeTree()
let took = (SystemClock().uptime() - begun).milliseconds
say("\(done) schedules, \(failed) with problems, \(steps) steps, \(took) ms")
exit(failed == 0 ? 0 : 1)
