package import Logging
import PromiseContent
package import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem

/// Index against content store against provider, of a domain that is mounted and of one that is
/// not.
package struct Verification: Sendable {
    let tree: DomainTree
    let content: ContentStore
    let stateFolder: [UInt8]
    let keyValues: Values
    let documents: DocumentServices
    let thumbnails: Thumbnails
    let clock: any TimeSource

    /// Blocks for as long as the checks take. `provider`: the provider is asked, too, and clean
    /// content compared with it.
    package func run(repair: Bool, provider asksProvider: Bool) async throws(Failure)
        -> VerifyReport
    {
        if repair, asksProvider, tree.isReadOnly {
            throw Failure(
                .readOnly, "the domain is mounted read-only: nothing is repaired at the provider")
        }
        let checks = DomainChecks(
            index: tree.index, content: content, provider: asksProvider ? tree.provider : nil,
            clock: clock, grants: documents.grants.store,
            records: records(asksProvider: asksProvider, isRepairing: repair),
            onMended: MendedNames(filesystem: tree.filesystem, index: tree.index).show,
            makeVerification: { [tree] in tree.filesystem.verifyContent(repair: repair) })
        // What this machine would remove there soon is no fault.
        if asksProvider { await PictureTidying(thumbnails: thumbnails).run() }
        let report = try await checks.run(repair: repair)
        if repair { thumbnails.resumeSending(documents.moveNotes) }
        if repair, !report.repaired.isEmpty {
            tree.engine.lookNow(everything: true)
            tree.engine.notePending()
        }
        // Whoever has asked for the repair looks at the mount next.
        if repair { await tree.filesystem.waitUntilKernelIsTold(within: Verification.kernelPatience) }
        return report
    }

    private static let kernelPatience = Duration.seconds(1)

    /// Checks a domain that is not mounted: where it lies and how its provider is logged in to says
    /// `configuration`, what the provider is the index. Takes the state folder's lock; throws a
    /// sentence when a daemon has it.
    package static func ofUnmounted(
        _ configuration: DomainConfiguration, repair: Bool, provider asksProvider: Bool,
        logger: Logger
    ) async throws(Domain.StartFailure) -> VerifyReport {
        let stateFolder = configuration.stateFolder
        // Looking must not make a state folder.
        guard
            (try? FileStatus.of(
                stateFolder + Array("/index.sqlite".utf8), label: "domain.verify.index")) != nil
        else {
            throw Domain.StartFailure(
                "there is no domain in '\(escapedForDisplay(stateFolder))'", exitStatus: 3)
        }
        let state = try StateFolder(stateFolder)
        defer { withExtendedLifetime(state) {} }
        do throws(Failure) {
            let index = try Index(path: state.file("index.sqlite"))
            defer { index.close() }
            let content = try ContentStore(folder: state.file("content"))
            let provider =
                asksProvider ? try await connectedProvider(of: index, configuration, logger) : nil
            let checks = DomainChecks(
                index: index, content: content, provider: provider, clock: SystemClock(),
                grants: GrantStore(
                    index: index, key: StateKey(path: state.file(StateKey.fileName))),
                records: RecordVerification(
                    stateFolder: stateFolder, index: index, provider: provider, inMemory: nil,
                    isRepairing: repair),
                onMended: { _ in },
                makeVerification: {
                    ContentVerification(
                        index: index, content: content, clock: SystemClock(), isRepairing: repair,
                        isOpen: { _ in false },
                        onChange: { _ in })
                })
            return try await checks.run(repair: repair)
        } catch {
            throw Domain.StartFailure(error)
        }
    }

    private func records(asksProvider: Bool, isRepairing: Bool) -> RecordVerification {
        RecordVerification(
            stateFolder: stateFolder, index: tree.index,
            provider: asksProvider ? tree.provider : nil,
            inMemory: RecordVerification.InMemory(
                values: keyValues, containers: documents.containers,
                attributes: documents.attributes, moves: documents.moveNotes),
            isRepairing: isRepairing)
    }

    private static func connectedProvider(
        of index: Index, _ configuration: DomainConfiguration, _ logger: Logger
    ) async throws(Failure) -> any Provider {
        guard
            let name = try index.read({ transaction throws(Failure) in
                try transaction.setting("provider.name")
            })
        else {
            throw Failure(.invalid, "the domain was never mounted, so it has no provider")
        }
        let provider: any Provider
        let choice = ProviderChoice(
            name: name, domain: configuration.name, login: configuration.login,
            credentialsFile: configuration.credentialsFile,
            stateFolder: configuration.stateFolder, mayProbe: false,
            certificate: configuration.certificate,
            logger: logger)
        do throws(Domain.StartFailure) { provider = try choice.make() } catch {
            throw Failure(.invalid, error.message)
        }
        do throws(ProviderError) {
            try await withDeadline(configuration.requestDeadline, "the provider did not answer") {
                () throws(ProviderError) in
                try await provider.connect()
            }
        } catch {
            throw error.failure
        }
        return provider
    }
}

/// The checks in their order: each may rely on what the one before has mended.
private struct DomainChecks {
    let index: Index
    let content: ContentStore
    /// nil: it is not asked.
    let provider: (any Provider)?
    let clock: any TimeSource
    let grants: GrantStore
    let records: RecordVerification
    /// What a repair of the index has changed that programs see.
    let onMended: ([Change]) -> Void
    let makeVerification: () -> ContentVerification

    func run(repair: Bool) async throws(Failure) -> VerifyReport {
        var report = VerifyReport(problems: [], repaired: [], nodes: 0)
        if repair { report.repaired += try mendIndex() }
        report.problems += try index.verify()
        report.problems += try index.verifyQueue()
        let granted = try grants.check(isRepairing: repair)
        report.problems += granted.problems
        report.repaired += granted.repaired
        let kept = try await records.run()
        report.problems += kept.problems
        report.repaired += kept.repaired
        var verification = makeVerification()
        var differences: [ProviderVerification.Difference] = []
        if let provider {
            let root = try index.read { transaction throws(Failure) in
                try transaction.setting("root.identifier")
            }
            let comparison = ProviderVerification(
                index: index, content: content, provider: provider,
                rootIdentifier: ItemIdentifier(root ?? ""))
            let items = try await comparison.compareItems()
            // A look at the provider, which every mount begins with, mends these.
            if repair {
                report.repaired += items.map { $0 + "; it will be looked at" }
            } else {
                report.problems += items
            }
            differences = try await comparison.compareContents()
        }
        for difference in differences {
            try verification.replaceDiffering(difference.node, difference.problem)
        }
        let found = try verification.run()
        report.problems += found.problems
        report.repaired += found.repaired
        report.nodes = try index.read { transaction throws(Failure) in
            try transaction.counts().nodes
        }
        return report
    }

    private func mendIndex() throws(Failure) -> [String] {
        // Asked only of nodes without a name and names without a node, of which there are few.
        let mended: (done: [String], changes: [Change]) = try index.write {
            transaction throws(Failure) in
            let before = try transaction.lastChange()
            let done = try transaction.repair(
                now: clock.now(),
                hasContent: { node in (try? content.status(node.id, node.generation)) != nil },
                keep: { node throws(Failure) in try content.keepAll(of: node) })
            return (done, try transaction.changes(since: before, limit: .max))
        }
        if !mended.done.isEmpty {
            try index.synchronize()
            onMended(mended.changes)
        }
        return mended.done
    }
}
