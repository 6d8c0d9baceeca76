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

struct Options {
    var seed = UInt64.random(in: 0...UInt64.max)
    var schedules = 1
    var seconds = 3_600
    var size = 100
    var store: Int?
    var printsTrace = false
    var stops = false

    init(_ arguments: [String]) {
        var rest = arguments[...]
        while let option = rest.popFirst() {
            switch option {
            case "--help":
                say("usage: simulate [--seed N] [--schedules N] [--seconds N] [--size PERCENT] [--store N]")
                say("                [--trace] [--stop]")
                say("example: simulate --seed 1380 --trace")
                exit(0)
            case "--trace": printsTrace = true
            case "--stop": stops = true
            case "--seed", "--schedules", "--seconds", "--size", "--store":
                guard let text = rest.popFirst(), let number = UInt64(text) else { Options.fail("\(option) needs a number") }
                switch option {
                case "--seed": seed = number
                case "--schedules": schedules = Int(clamping: number)
                case "--seconds": seconds = Int(clamping: number)
                case "--size": size = Int(clamping: number)
                default: store = Int(clamping: number) % StoreKind.all.count
                }
            default: Options.fail("there is no option \(option)")
            }
        }
    }

    static func fail(_ message: String) -> Never {
        say("simulate: \(message)")
        exit(2)
    }
}

let options = Options(Array(CommandLine.arguments.dropFirst()))
let parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
let base = "\(parent)/promisefs-simulation-\(getpid())"
let begun = SystemClock().uptime()
var (done, failed, steps) = (0, 0, 0)
say("simulate: --seed \(options.seed) --schedules \(options.schedules) --size \(options.size)")
for number in 0..<options.schedules {
    if SystemClock().uptime() - begun > .seconds(options.seconds) { break }
    let seed = options.seed &+ UInt64(number)
    let schedule = Schedule(
        seed: seed, folder: Array("\(base)/\(number)".utf8), size: options.size, store: options.store,
        printsTrace: options.printsTrace)
    let problems = schedule.run()
    removeTree("\(base)/\(number)")
    done += 1
    steps += schedule.simulation.stepCount
    if options.schedules == 1 || !problems.isEmpty {
        let simulation = schedule.simulation
        say("seed \(seed): trace \(simulation.trace.number), \(simulation.stepCount) steps; \(schedule.plan.text)")
    }
    guard !problems.isEmpty else { continue }
    failed += 1
    for problem in problems { say("  \(problem)") }
    if options.stops { break }
}
removeTree(base)
let took = (SystemClock().uptime() - begun).milliseconds
say("\(done) schedules, \(failed) with problems, \(steps) steps, \(took) ms")
exit(failed == 0 ? 0 : 1)

/// With everything below it.
func removeTree(_ path: String) {
    var names: [String] = []
    if let folder = opendir(path) {
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        closedir(folder)
        for name in names { removeTree("\(path)/\(name)") }
        rmdir(path)
    } else {
        unlink(path)
    }
}
