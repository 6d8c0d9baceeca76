import Glibc

/// What the command line says.
struct Options {
    var seed = UInt64.random(in: 0...UInt64.max)
    var schedules = 1
    var seconds = 3_600
    var size = 100
    var store: Int?
    var printsTrace = false
    var stops = false
    var reductions: [Reduction] = []
    /// Calls of one machine's file system, compared with a model; nil for schedules of the whole.
    var operations: Int?
    var withFaults = false
    /// Each schedule has a taste of its own.
    var isSwarm = false
    var hasPowerCuts = false
    /// Somebody acts at the store itself, and programs change rights, times, sizes and names.
    var hasStrangers = false
    /// Files come in pieces.
    var hasLargeFiles = false
    /// Each schedule has a situation, one of these stories.
    var stories: [Situation.Story]?

    init(_ arguments: [String]) {
        var rest = arguments[...]
        while let option = rest.popFirst() {
            switch option {
            case "--help":
                say("usage: simulate [--seed N] [--schedules N] [--seconds N] [--size PERCENT] [--store N]")
                say("                [--less WHAT,…] [--trace] [--stop] [--model OPERATIONS] [--faults] [--swarm]")
                say("                [--situations] [--situation WHAT,…] [--power-cuts] [--strangers] [--large-files]")
                say("example: simulate --seed 1380 --trace")
                exit(0)
            case "--trace": printsTrace = true
            case "--stop": stops = true
            case "--faults": withFaults = true
            case "--swarm": isSwarm = true
            case "--power-cuts": hasPowerCuts = true
            case "--strangers": hasStrangers = true
            case "--large-files": hasLargeFiles = true
            case "--situations": stories = Situation.Story.chosen
            case "--situation":
                guard let text = rest.popFirst() else { Options.fail("--situation needs a list") }
                stories = text.split(separator: ",").map { name in
                    let all = Situation.Story.allCases
                    guard let story = all.first(where: { "\($0)" == name }) else {
                        Options.fail("there is no situation '\(name)', only \(all)")
                    }
                    return story
                }
            case "--less":
                guard let text = rest.popFirst() else { Options.fail("--less needs a list") }
                reductions = text.split(separator: ",").map { name in
                    guard let reduction = Reduction(rawValue: String(name)) else {
                        Options.fail("there can be less of \(Reduction.allCases.map(\.rawValue)), not of '\(name)'")
                    }
                    return reduction
                }
            case "--seed", "--schedules", "--seconds", "--size", "--store", "--model":
                guard let text = rest.popFirst(), let number = UInt64(text) else { Options.fail("\(option) needs a number") }
                switch option {
                case "--seed": seed = number
                case "--schedules": schedules = Int(clamping: number)
                case "--seconds": seconds = Int(clamping: number)
                case "--model": operations = Int(clamping: number)
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
