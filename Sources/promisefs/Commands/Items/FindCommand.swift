import ArgumentParser
import Glibc
import PromiseCore
import PromiseKit
import PromiseWire

struct FindCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "find",
        abstract: "Find items by what is known of them, without their content.",
        discussion: """
            PREDICATE is written as for NSPredicate; docs/QUERIES.md has the attributes. Plain words are looked for in names, \
            and so is --name with * and ?. Without FOLDER all mounted domains are \
            asked. With --live it goes on until interrupted, with '+' before what came, '~' before what changed and '-' before \
            what went. With --json it is one object a line.

            Example:
              promisefs find report
              promisefs find /mnt --name '*.txt'
              promisefs find /mnt 'kMDItemFSName LIKE[c] "*.txt" AND kMDItemFSSize > 1000'
            """)

    @Argument(help: ArgumentHelp("A folder on a mount, and a predicate.", valueName: "[FOLDER] PREDICATE"))
    var operands: [PathArgument] = []
    @Option(name: .long, help: ArgumentHelp("A name, with * and ?, in large or small letters.", valueName: "pattern"))
    var name: String?
    @Flag(name: .long, help: "Go on with what changes.")
    var live = false
    @Option(
        name: .customLong("scope"),
        help: "Find documents in containers, their other data, or external: references, and nothing else.")
    var area: Area?
    @Option(
        name: .long, help: ArgumentHelp("With --scope documents or data: of this application.", valueName: "identifier"))
    var app: String?
    @Flag(name: .long, help: "The same as --scope external.")
    var external = false
    @Option(
        name: .long, parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Sort by an attribute; '-' before it turns the order around.", valueName: "key"))
    var sort: [String] = []
    @Option(name: .long, help: ArgumentHelp("Show no more than this of each domain.", valueName: "number"))
    var limit: Int?
    @Option(name: .long, help: ArgumentHelp("With --live: tell changes together, so often.", valueName: "duration"))
    var batching: TimeSpan?
    @Option(name: .long, help: ArgumentHelp("With --json: show this attribute, too.", valueName: "key"))
    var attribute: [String] = []
    @OptionGroup var output: OutputOptions

    enum Area: String, ExpressibleByArgument, CaseIterable { case documents, data, external }

    func validate() throws {
        if external, area ?? .external != .external { throw ValidationError("--external is --scope external") }
        if app != nil, area != .documents, area != .data {
            throw ValidationError("--app says whose documents or data: give --scope documents or --scope data")
        }
        guard (name == nil ? 1...2 : 0...2).contains(operands.count) || areWords else {
            throw ValidationError("give a predicate, and before it a folder or none")
        }
        if live, limit != nil { throw ValidationError("a live query has no limit") }
        if let limit, limit < 0 { throw ValidationError("a limit is not negative") }
    }

    /// Several words to look for, of which none is a place.
    private var areWords: Bool {
        guard operands.count > 1, let first = operands.first, !first.bytes.contains(0x2F) else { return false }
        return !SystemMounts.isAccessible(first.bytes, F_OK)
            && operands.allSatisfy { PlainPredicate.isWords(String(decoding: $0.bytes, as: UTF8.self)) }
    }

    func run() async throws {
        if live { Interruption.ends() }
        var operands = operands
        if areWords, let first = operands.first {
            // The name of a mounted domain is a place.
            let isPlace = try await Targets.mounts().contains { $0.isCalled(first.bytes) }
            let words = operands.dropFirst(isPlace ? 1 : 0).map(\.bytes).joined(separator: [0x20])
            operands = (isPlace ? [first] : []) + [PathArgument(bytes: Array(words))]
        }
        // With a name a single operand is the folder.
        let hasFolder = operands.count >= 2 || name != nil && operands.count == 1
        let given = operands.count == (hasFolder ? 1 : 0) ? nil : operands.last
        guard let words = String(validating: given?.bytes ?? [], as: UTF8.self) else {
            throw CommandFailure("the predicate is not UTF-8", exitStatus: ExitStatus.usage)
        }
        let predicate = PlainPredicate.predicate(given == nil ? nil : words, name: name)
        var failures = FailureCollector()
        let scopes = try await scope(hasFolder ? operands[0] : nil)
        guard !scopes.isEmpty else {
            throw CommandFailure("no domain is mounted; try: promisefs mount --help", exitStatus: ExitStatus.notPromiseFS)
        }
        let results = await withTaskGroup(of: CommandFailure?.self) { group in
            for (mount, path) in scopes {
                group.addTask { [self] in
                    do throws(PromiseError) {
                        // A query is waited for without end; one of several daemons may say nothing at all.
                        if scopes.count > 1 { _ = try await PromiseClient(mount: mount).status() }
                        try await show(predicate, mount, path)
                        return nil
                    } catch {
                        return CommandFailure(error)
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        // What is wrong with the question is said by each domain.
        var said: [CommandFailure] = []
        for failure in results.compactMap({ $0 }) where !said.contains(failure) {
            said.append(failure)
            failures.note(failure)
        }
        try failures.finish()
    }

    /// A line of `--json`.
    private struct Line: Encodable {
        var event: String
        var domain: String
        var item: FoundItemDocument?
        var id: Int64?
    }

    private func show(_ predicate: String, _ mount: MountEntry, _ path: [UInt8]?) async throws(PromiseError) {
        var query = MetadataQuery(predicate)
        if let path { query = query.scope(path) }
        query.document.live = live
        query.document.area = external ? Area.external.rawValue : area?.rawValue
        query.document.application = app
        if let batching { query = query.batching(batching.duration) }
        query.document.limit = limit
        query.document.sort = sort.isEmpty ? nil : sort
        query.document.attributes = attribute.isEmpty ? nil : attribute
        // Where what went was, by the number of the item.
        var paths: [Int64: String] = [:]
        let client = try PromiseClient(mount: mount)
        guard live else {
            for await update in readAhead(query, client) { show(try update.get(), mount, &paths) }
            return
        }
        var succession = DaemonSuccession(of: client.domain)
        var updates: MetadataQuery.Updates? = try await query.updates(of: client)
        var isFirst = true
        while let these = updates {
            var end: PromiseError?
            do throws(PromiseError) {
                try await show(these, isFirst: isFirst, mount, &paths, &succession)
            } catch {
                end = error
            }
            isFirst = false
            updates = try await succession.next(after: end) { () async throws(PromiseError) in
                try await query.updates(of: client)
            }
        }
        Output.unmounted(client.domain)
    }

    private func showReset(_ mount: MountEntry, _ paths: inout [Int64: String]) {
        paths = [:]
        if output.json { Output.json(Line(event: "reset", domain: mount.domain)) } else { Output.line("! again") }
    }

    /// Until the daemon ends the query. What the next daemon knows is everything again.
    private func show(
        _ these: MetadataQuery.Updates, isFirst: Bool, _ mount: MountEntry,
        _ paths: inout [Int64: String], _ succession: inout DaemonSuccession
    ) async throws(PromiseError) {
        var updates = these.makeAsyncIterator()
        var isAgain = !isFirst
        while let update = try await updates.next() {
            succession.heard()
            if isAgain { showReset(mount, &paths) }
            isAgain = false
            show(update, mount, &paths)
        }
    }

    /// All of a finite answer, whenever it is printed: whoever reads that may stop, as less(1) does, and the daemon ends a
    /// connection that nobody reads.
    private func readAhead(
        _ query: MetadataQuery, _ client: PromiseClient
    ) -> AsyncStream<Result<MetadataQuery.Update, PromiseError>> {
        AsyncStream { continuation in
            let reading = Task {
                do throws(PromiseError) {
                    var updates = try await query.updates(of: client).makeAsyncIterator()
                    while let update = try await updates.next() { continuation.yield(.success(update)) }
                } catch {
                    continuation.yield(.failure(error))
                }
                continuation.finish()
            }
            continuation.onTermination = { _ in reading.cancel() }
        }
    }

    private func show(
        _ update: MetadataQuery.Update, _ mount: MountEntry, _ paths: inout [Int64: String]
    ) {
        switch update {
        case .added(let items): show(items, "added", "+", mount, &paths)
        case .changed(let items): show(items, "changed", "~", mount, &paths)
        case .removed(let ids):
            for id in ids {
                let path = paths.removeValue(forKey: id) ?? ""
                if output.json {
                    Output.json(Line(event: "removed", domain: mount.domain, id: id))
                } else {
                    Output.line("- \(shownPath(path, on: mount))")
                }
            }
        case .finishedGathering:
            if output.json, live { Output.json(Line(event: "gathered", domain: mount.domain)) }
        case .reset: showReset(mount, &paths)
        }
    }

    private func show(
        _ items: [FoundItemDocument], _ event: String, _ mark: String, _ mount: MountEntry, _ paths: inout [Int64: String]
    ) {
        // Without --live each is shown once, whatever becomes of it while others are gathered.
        let items = live ? items : items.filter { paths[$0.id] == nil }
        for item in items { paths[item.id] = item.path }
        if output.json {
            let lines = items.map { Line(event: event, domain: mount.domain, item: $0) }
            return Output.jsonLines(lines)
        }
        let prefix = live ? mark + " " : ""
        Output.text(items.map { prefix + shownPath($0.path, on: mount) + "\n" }.joined())
    }
}

struct ChangesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "changes",
        abstract: "Show the journal of changes of a domain after a number.",
        discussion: """
            Without PATH the one mounted domain is meant. With --json it is one object a line. When the journal does not reach \
            back to the number, changes are missing and it says so.

            Example:
              promisefs changes /mnt --since 0 --follow
            """)

    @Argument(help: "A path on a mount: its domain is meant.")
    var path: PathArgument?
    @Option(name: .long, help: ArgumentHelp("Show what came after this number; 0 is everything.", valueName: "number"))
    var since: Int64
    @Flag(name: [.customShort("f"), .long], help: "Go on with what changes, also when another daemon takes over.")
    var follow = false
    @Option(
        name: .long, help: ArgumentHelp("Whose number that is, as --json says: another journal's is refused.", valueName: "text"))
    var journal: String?
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if since < 0 { throw ValidationError("a number of a change is not negative") }
    }

    func run() async throws {
        let mount = try await Targets.onlyMount(of: path)
        let client = try PromiseClient(mount: mount)
        guard follow else {
            var (position, isFirst) = (since, true)
            while true {
                let page = try await client.changes(since: position, journal: journal)
                show(page, isFirst: isFirst)
                guard let last = page.changes.last else { return }
                (position, isFirst) = (last.sequence, false)
            }
        }
        Interruption.ends()
        var follower = ChangeFollower(client, since: since, journal: journal)
        var isFirst = true
        while let page = try await follower.next() {
            show(page, isFirst: isFirst)
            isFirst = false
        }
        Output.unmounted(client.domain)
    }

    /// The first line of `--json`, and one whenever changes are missing.
    private struct JournalLine: Encodable {
        var kind = "journal"
        var journal: String
        var first: Int64
        var last: Int64
        var isIncomplete: Bool
    }

    private func show(_ page: ChangesDocument, isFirst: Bool) {
        if output.json, isFirst || page.isIncomplete {
            Output.json(
                JournalLine(journal: page.journal, first: page.first, last: page.last, isIncomplete: page.isIncomplete))
        }
        if page.isIncomplete {
            Output.problem("the journal begins with change \(page.first): those before it are missing")
        }
        if output.json { return Output.jsonLines(page.changes) }
        let lines = page.changes.map { change in
            let count = change.count > 1 ? " and \(change.count - 1) more" : ""
            let old = change.oldName.map { " (was \($0))" } ?? ""
            return "\(change.sequence)  \(change.kind)  \(change.path ?? change.name ?? "node \(change.node)")\(count)\(old)"
        }
        Output.text(lines.map { $0 + "\n" }.joined())
    }
}
