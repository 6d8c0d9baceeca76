import PromiseCore

// Trouble between the provider and its storage: with each request of a call in turn, until the call needs no more. Nothing is
// lost, made twice or taken for whole, and what is thrown says that it may pass.

extension ConformanceSuite {
    static let lineChecks: [ConformanceCheck] = [
        ConformanceCheck("a file that is made during trouble is whole, or not there", needsLine: true) { context in
            let bytes = pattern(5000, seed: 11)
            try await context.eachFault(FaultTrial.ofWrites) { trial in
                let name = trial.name
                let isDone = try await trial.strike { _ = try await context.makeFile(name, bytes) }
                let seen = try await context.named(name)
                try context.require(seen.count == 1 || seen.isEmpty && !isDone, "\(trial): it is there \(seen.count) times")
                if seen.isEmpty { try await context.patiently { _ = try await context.makeFile(name, bytes) } }
                for item in try await context.named(name) { try await context.checkContent(item, is: bytes) }
            }
        },
        ConformanceCheck("a file that is modified during trouble is the old or the new one", needsLine: true) { context in
            let (old, new) = (pattern(3000, seed: 12), pattern(5000, seed: 13))
            try await context.eachFault(FaultTrial.ofWrites) { trial in
                let made = try await context.makeFile(trial.name, old)
                let isDone = try await trial.strike {
                    _ = try await context.provider.modify(
                        context.reference(made), changes: ItemChanges(), contents: try context.source(new),
                        baseVersion: made.version)
                }
                let seen = try await context.named(trial.name)
                try context.require(seen.count == 1, "\(trial): it is there \(seen.count) times")
                let isNew = seen[0].version != made.version
                try context.require(isNew || !isDone, "\(trial): it was modified and is as it was")
                try await context.checkContent(seen[0], is: isNew ? new : old)
            }
        },
        ConformanceCheck("a file moved during trouble is in one place", needs: .atomicRename, needsLine: true) { context in
            try await context.eachFault(FaultTrial.ofWrites) { trial in
                let made = try await context.makeFile(trial.name, [1, 2, 3])
                let target = trial.name + "-moved"
                let isDone = try await trial.strike {
                    let place = (context.folder, FileName(trusted: Array(target.utf8)))
                    _ = try await context.provider.modify(
                        context.reference(made), changes: ItemChanges(place: place), contents: nil, baseVersion: nil)
                }
                let (old, new) = (try await context.named(trial.name), try await context.named(target))
                try context.require(old.count + new.count == 1, "\(trial): it is there \(old.count + new.count) times")
                try context.require(old.isEmpty || !isDone, "\(trial): it was moved and is where it was")
                for item in old + new { try await context.checkContent(item, is: [1, 2, 3]) }
            }
        },
        ConformanceCheck("a file that is deleted during trouble is whole, or gone", needsLine: true) { context in
            let bytes = pattern(3000, seed: 14)
            try await context.eachFault(FaultTrial.ofWrites) { trial in
                let made = try await context.makeFile(trial.name, bytes)
                let isDone = try await trial.strike {
                    try await context.provider.delete(context.reference(made), baseVersion: made.version)
                }
                let seen = try await context.named(trial.name)
                try context.require(seen.isEmpty || !isDone, "\(trial): it was deleted and is there")
                for item in seen { try await context.checkContent(item, is: bytes) }
                try await context.patiently {
                    try await context.provider.delete(context.reference(made), baseVersion: made.version)
                }
                try context.require(try await context.named(trial.name).isEmpty, "\(trial): it cannot be deleted afterwards")
            }
        },
        ConformanceCheck("a fetch during trouble brings all of the version, or fails", needsLine: true) { context in
            let bytes = pattern(300_000, seed: 15)
            let made = try await context.makeFile("file", bytes)
            try await context.eachFault(FaultTrial.ofFetches) { trial in
                let sink = ConformanceSink()
                let isDone = try await trial.strike {
                    try await context.provider.fetchContents(
                        of: context.reference(made), version: made.version, range: nil, into: sink)
                }
                if isDone && trial.isHit {
                    try context.require(trial.fault != .otherVersion, "\(trial): another version was taken for the right one")
                    try context.require(areEqual(sink.bytes, bytes), "\(trial): what came is not the content")
                }
            }
            try await context.checkContent(made, is: bytes)
        },
        ConformanceCheck("a listing during trouble shows everything, or fails", needsLine: true) { context in
            for number in 0..<12 { _ = try await context.makeFile("file-\(number)", [1]) }
            let made = Set(try await context.list().map(\.identifier))
            try context.require(made.count == 12, "12 items were made and \(made.count) are listed")
            try await context.eachFault(FaultTrial.ofListings) { trial in
                var seen: [Item] = []
                let isDone = try await trial.strike { seen = try await context.list() }
                guard isDone else { return }
                try context.require(Set(seen.map(\.identifier)) == made && seen.count == 12, "\(trial): it shows something else")
            }
        },
        ConformanceCheck("no item is listed twice by a storage that names everything twice", needsLine: true) { context in
            for number in 0..<5 { _ = try await context.makeFile("file-\(number)", [1]) }
            for number in 0..<2 { _ = try await context.makeFolder("folder-\(number)") }
            let made = Set(try await context.list())
            try context.require(made.count == 7, "7 items were made and \(made.count) are listed")
            try await context.eachFault([.repeatedRows]) { trial in
                var seen: [Item] = []
                let isDone = try await trial.strike { seen = try await context.list() }
                try context.require(isDone, "\(trial): the listing failed")
                try context.require(seen.count == 7, "\(trial): of 7 items \(seen.count) are listed")
                try context.require(Set(seen) == made, "\(trial): it shows something else")
            }
        },
    ]
}

/// One call during which one request has trouble.
struct FaultTrial: CustomStringConvertible {
    static let ofWrites: [FaultLine.Fault] = [.status(503), .lostAnswer]
    static let ofFetches: [FaultLine.Fault] = [
        .delay(.milliseconds(100)), .status(429), .lostAnswer, .shortReply, .brokenReply, .otherVersion,
    ]
    static let ofListings: [FaultLine.Fault] = [
        .delay(.milliseconds(100)), .status(503), .lostAnswer, .shortReply, .brokenReply,
    ]

    let fault: FaultLine.Fault
    /// How many requests are let through before.
    let skippedCount: Int
    fileprivate let line: FaultLine
    /// Of a file of its own.
    let name: String
    fileprivate(set) var isReached = false
    private(set) var isHit = false

    var description: String { "\(fault) with request \(skippedCount + 1)" }

    /// Whether the call was done. A failure breaks the law that says neither that it may pass nor that somebody is to look again.
    mutating func strike(_ call: () async throws -> Void) async throws -> Bool {
        line.plan(fault, after: skippedCount)
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await call()) } catch { outcome = .failure(error) }
        (isReached, isHit) = line.end()
        do {
            try outcome.get()
            return true
        } catch let error as ProviderError {
            // An answer that ends in order is the storage's word, which is wrong for good.
            let isWord = fault == .shortReply && [.corrupted, .permanent].contains(error.code)
            if error.isPassing || isWord || error.code == .conflict || error.code == .stale { return false }
            throw ConformanceFailure("\(self): the failure is \(error.code), which does not pass: \(error.message)")
        }
    }
}

extension ConformanceContext {
    /// No call of a provider needs more requests for a small file.
    private static let requestsMax = 32
    /// Where a refusal has to wait for others to be tried again, the later requests take long and tell little more.
    private static let refusedRequestsMax = 2
    private static let patienceSeconds = 90

    /// Each fault with the first request of a call, with the second, and so on; `body` makes the call once.
    func eachFault(_ faults: [FaultLine.Fault], _ body: (inout FaultTrial) async throws -> Void) async throws {
        guard let line = provider.faultLine else { return }
        for (kind, fault) in faults.enumerated() {
            var limit = Self.requestsMax
            if case .status = fault { limit = Self.refusedRequestsMax }
            for count in 0..<limit {
                var trial = FaultTrial(fault: fault, skippedCount: count, line: line, name: "file-\(kind)-\(count)")
                try await body(&trial)
                guard trial.isReached else { break }
            }
        }
    }

    /// For what follows trouble: a storage may have to find out first that it is over. A lock whose token got lost lasts for
    /// half a minute where nobody can ask for it.
    func patiently(_ body: () async throws -> Void) async throws {
        for _ in 0..<Self.patienceSeconds {
            do {
                return try await body()
            } catch let error as ProviderError where error.isPassing {
                try await Task.sleep(for: .seconds(1))
            }
        }
        try await body()
    }

    func named(_ name: String) async throws -> [Item] {
        try await list().filter { $0.name.bytes == Array(name.utf8) }
    }
}

extension ProviderError {
    fileprivate var isPassing: Bool {
        switch code {
        case .retry, .retryAfter, .offline: true
        default: false
        }
    }
}
