package import Logging
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseS3
import PromiseSystem
import PromiseWebDAV

/// Runs the rules of providers against one, without a mount: what `promisefs provider check` does.
package struct ProviderInspection: Sendable {
    package struct Check: Sendable {
        package enum Outcome: String, Sendable { case passed, failed, skipped }
        package var name: String
        package var outcome: Outcome
        /// Why it failed or was left out.
        package var detail: String?
    }

    package struct Report: Sendable {
        package var provider: String
        package var capabilities: [String]
        package var limitations: [String]
        package var checks: [Check]
        /// Of 100, of the checks that applied.
        package var score: Int
        package var passedCount: Int { checks.count { $0.outcome == .passed } }
        package var failedCount: Int { checks.count { $0.outcome == .failed } }
        package var skippedCount: Int { checks.count { $0.outcome == .skipped } }
    }

    package var provider: String
    package var domain: String
    package var login: Login?
    package var credentialsFile: [UInt8]?
    /// As `DomainConfiguration` has it.
    package var certificate: String?
    /// Bytes of a folder's path from the root, which may be missing; nil: only read.
    package var writableFolder: [UInt8]?
    /// How long it may take to connect.
    package var patience = Duration.seconds(60)

    package init(provider: String, domain: String) {
        self.provider = provider
        self.domain = domain
    }

    /// Throws a sentence when the provider cannot be reached at all.
    package func run(logger: Logger) async throws(Domain.StartFailure) -> Report {
        let provider = try choice(logger).make()
        do throws(ProviderError) {
            try await connect(provider)
            var reports = [await ReadingChecks(provider: provider).run()]
            if let writableFolder {
                let folder = try await makeFolder(names(in: writableFolder), provider)
                reports.append(await ConformanceSuite(provider: provider, folder: folder).run())
                reports.append(await removal(of: folder, provider))
            }
            return report(reports, provider)
        } catch {
            throw failure(error)
        }
    }

    /// Only sees whether it answers and lets the user in. Throws a sentence when not.
    package func connect(logger: Logger) async throws(Domain.StartFailure) {
        let provider = try choice(logger).make()
        do throws(ProviderError) {
            try await connect(provider)
            // Some let everybody connect.
            let root = try await provider.root()
            _ = try await provider.enumerateItems(in: ItemReference(identifier: root.identifier, path: []), page: nil)
        } catch {
            throw failure(error)
        }
    }

    /// By how much this machine's clock is ahead of the server's; nil when that does not say.
    package func secondsAhead() async -> Int? {
        let origin: String?
        switch provider.prefix(while: { $0 != ":" }) {
        case "webdav+http", "webdav+https": origin = (try? WebDAVLocation(parsing: provider))?.url([])
        case "s3": origin = (try? S3Location(parsing: provider))?.endpoint
        default: origin = nil
        }
        let trust = certificate.flatMap { try? ServerTrust(parsing: $0) } ?? .system
        guard let origin, let time = await ServerClock.time(of: origin, trust: trust) else { return nil }
        return Int(SystemClock().now().seconds - time.seconds)
    }

    private func choice(_ logger: Logger) -> ProviderChoice {
        ProviderChoice(
            name: provider, domain: domain, login: login, credentialsFile: credentialsFile, stateFolder: nil,
            mayProbe: writableFolder != nil, certificate: certificate, logger: logger)
    }

    private func connect(_ provider: any Provider) async throws(ProviderError) {
        try await withDeadline(patience, "the provider did not answer") { () throws(ProviderError) in
            try await provider.connect()
        }
    }

    private func failure(_ error: ProviderError) -> Domain.StartFailure {
        let status: Int32 =
            switch error.code {
            case .offline, .retry, .retryAfter: 4
            case .authenticate, .refused: 5
            default: 1
            }
        return Domain.StartFailure(error.message, exitStatus: status)
    }

    private func names(in path: [UInt8]) throws(ProviderError) -> [FileName] {
        var names: [FileName] = []
        for part in path.split(separator: UInt8(ascii: "/")) {
            guard let name = FileName(part) else {
                throw ProviderError(.permanent, "'\(escapedForDisplay(path))' is not a path from the provider's root")
            }
            names.append(name)
        }
        return names
    }

    /// The folders of a path, made where they are missing, and a new one inside.
    private func makeFolder(_ names: [FileName], _ provider: any Provider) async throws(ProviderError) -> ItemReference {
        var here = ItemReference(identifier: try await provider.root().identifier, path: [])
        for name in names { here = try await enter(name, of: here, provider) }
        let unique = "promisefs-check-\(SystemClock().now().rawValue)"
        return try await enter(FileName(trusted: Array(unique.utf8)), of: here, provider)
    }

    private func removal(of folder: ItemReference, _ provider: any Provider) async -> ConformanceReport {
        var outcome = ConformanceResult.Outcome.passed
        do throws(ProviderError) {
            try await provider.delete(folder, baseVersion: nil)
        } catch {
            outcome = .failed(error.message)
        }
        let result = ConformanceResult(name: "what was made is removed again", outcome: outcome)
        return ConformanceReport(provider: provider.name, capabilities: provider.capabilities, results: [result])
    }

    private func enter(
        _ name: FileName, of folder: ItemReference, _ provider: any Provider
    ) async throws(ProviderError) -> ItemReference {
        var page: PageToken?
        repeat {
            let answer = try await provider.enumerateItems(in: folder, page: page)
            if let found = answer.items.first(where: { $0.name == name }) {
                return ItemReference(identifier: found.identifier, path: folder.path + [name])
            }
            page = answer.next
        } while page != nil
        let metadata = Metadata(mode: 0o755, owner: 0, group: 0, modificationTime: SystemClock().now())
        let made = try await provider.create(NewItem(name: name, kind: .folder, metadata: metadata), in: folder, contents: nil)
        return ItemReference(identifier: made.identifier, path: folder.path + [name])
    }

    private func report(_ reports: [ConformanceReport], _ provider: any Provider) -> Report {
        let results = reports.flatMap(\.results)
        let checks = results.map { result in
            switch result.outcome {
            case .passed: Check(name: result.name, outcome: .passed)
            case .failed(let sentence): Check(name: result.name, outcome: .failed, detail: sentence)
            case .skipped(let reason): Check(name: result.name, outcome: .skipped, detail: reason)
            }
        }
        let whole = ConformanceReport(provider: provider.name, capabilities: provider.capabilities, results: results)
        return Report(
            provider: provider.name, capabilities: provider.capabilities.nameList, limitations: provider.limitations,
            checks: checks, score: Int(whole.score * 100))
    }
}
