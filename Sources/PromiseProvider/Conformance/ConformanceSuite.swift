import PromiseCore
import PromiseSystem

/// The laws of `Provider`, checked against any provider inside one empty folder, with nothing but
/// the protocol.
///
/// A check of something the provider does not declare is skipped with that reason. Everything made
/// is removed again, into the storage's own bin where it has one.
package struct ConformanceSuite: Sendable {
    private let provider: any Provider
    private let folder: ItemReference
    private let scratch: [UInt8]

    /// `folder` is empty and may be filled. `scratch` is a local folder for temporary files.
    package init(provider: any Provider, folder: ItemReference, scratch: [UInt8] = Array("/tmp".utf8)) {
        self.provider = provider
        self.folder = folder
        self.scratch = scratch
    }

    /// Runs every check, one after the other, each in a folder of its own; with `capabilities` those that need all of these.
    package func run(needing capabilities: Capabilities = []) async -> ConformanceReport {
        var results: [ConformanceResult] = []
        for check in ConformanceSuite.checks where check.needs.isSuperset(of: capabilities) {
            results.append(ConformanceResult(name: check.name, outcome: await outcome(of: check)))
        }
        return ConformanceReport(provider: provider.name, capabilities: provider.capabilities, results: results)
    }

    /// In the order they run.
    package static var checkNames: [String] { checks.map(\.name) }

    static let checks: [ConformanceCheck] =
        itemChecks + contentChecks + nameChecks + conflictChecks + changeChecks + PrivateObjectChecks.all + LinkChecks.all
        + EarlierVersionChecks.all + BinChecks.all + faultChecks + lineChecks

    private func outcome(of check: ConformanceCheck) async -> ConformanceResult.Outcome {
        let missing = check.needs.subtracting(provider.capabilities)
        if !missing.isEmpty { return .skipped("not declared: \(missing.nameList.joined(separator: ", "))") }
        if check.needsLine && provider.faultLine == nil { return .skipped("there is no line to a server") }
        do {
            let name = FileName(trusted: check.folderName)
            let metadata = Metadata(
                mode: 0o755, owner: 0, group: 0, modificationTime: Timestamp(seconds: 1_700_000_000, nanoseconds: 0))
            let made = try await provider.create(
                NewItem(name: name, kind: .folder, metadata: metadata), in: folder, contents: nil)
            let reference = ItemReference(identifier: made.identifier, path: folder.path + [name])
            let context = ConformanceContext(provider: provider, folder: reference, scratch: scratch)
            let result: ConformanceResult.Outcome
            do {
                try await check.body(context)
                result = .passed
            } catch let error as ConformanceFailure {
                result = .failed(error.sentence)
            } catch let error as ConformanceLack {
                result = .skipped(error.sentence)
            } catch let error as ProviderError {
                result = .failed("an error nobody expected: \(error.code): \(error.message)")
            }
            if check.needsLine {
                try await context.patiently { try await context.removeEverything() }
            } else {
                try await context.removeEverything()
            }
            return result
        } catch let error as ProviderError {
            return .failed("the check's folder could not be made or removed: \(error.code): \(error.message)")
        } catch {
            return .failed("\(error)")
        }
    }
}

/// One law.
struct ConformanceCheck: Sendable {
    var name: String
    var needs: Capabilities
    /// It breaks the line to the storage.
    var needsLine: Bool
    var body: @Sendable (ConformanceContext) async throws -> Void

    init(
        _ name: String, needs: Capabilities = [], needsLine: Bool = false,
        _ body: @escaping @Sendable (ConformanceContext) async throws -> Void
    ) {
        self.name = name
        self.needs = needs
        self.needsLine = needsLine
        self.body = body
    }

    var folderName: [UInt8] { name.utf8.map { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "/") ? UInt8(ascii: "-") : $0 } }
}

/// A law that does not hold, in one sentence.
struct ConformanceFailure: Error {
    var sentence: String
    init(_ sentence: String) { self.sentence = sentence }
}

/// What a storage cannot do, and refuses without harm, in one sentence.
struct ConformanceLack: Error {
    var sentence: String
    init(_ sentence: String) { self.sentence = sentence }
}

package struct ConformanceResult: Sendable {
    package enum Outcome: Sendable, Hashable {
        case passed
        case failed(String)
        case skipped(String)
    }

    package let name: String
    package let outcome: Outcome

    package init(name: String, outcome: Outcome) {
        self.name = name
        self.outcome = outcome
    }
}

package struct ConformanceReport: Sendable, CustomStringConvertible {
    package let provider: String
    package let capabilities: Capabilities
    package let results: [ConformanceResult]

    package init(provider: String, capabilities: Capabilities, results: [ConformanceResult]) {
        self.provider = provider
        self.capabilities = capabilities
        self.results = results
    }

    package var passedCount: Int { results.count { $0.outcome == .passed } }

    package var failures: [(name: String, sentence: String)] {
        results.compactMap { result in if case .failed(let sentence) = result.outcome { (result.name, sentence) } else { nil } }
    }

    package var skipped: [(name: String, reason: String)] {
        results.compactMap { result in if case .skipped(let reason) = result.outcome { (result.name, reason) } else { nil } }
    }

    /// The part of the checks that ran which passed, 0 to 1; 1 when none ran.
    package var score: Double {
        let ran = passedCount + failures.count
        return ran == 0 ? 1 : Double(passedCount) / Double(ran)
    }

    /// One line a check, then the sum.
    package var description: String {
        var lines = ["provider \(provider): \(capabilities.nameList.joined(separator: ", "))"]
        for result in results {
            switch result.outcome {
            case .passed: lines.append("passed   \(result.name)")
            case .failed(let sentence): lines.append("FAILED   \(result.name): \(sentence)")
            case .skipped(let reason): lines.append("skipped  \(result.name): \(reason)")
            }
        }
        lines.append(
            "\(passedCount) passed, \(failures.count) failed, \(skipped.count) skipped: score \(Int(score * 100)) of 100")
        return lines.joined(separator: "\n")
    }
}
