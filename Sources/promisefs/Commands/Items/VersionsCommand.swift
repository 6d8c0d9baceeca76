import ArgumentParser
import PromiseCore
import PromiseKit
import PromiseWire
import Synchronization

struct VersionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "versions",
        abstract: "List the versions of a document: its own, the provider's, and those of unresolved conflicts.",
        discussion: """
            Nothing is fetched. What the provider has is listed where that is not what is here. With --earlier the provider is \
            asked what the document was before, where it keeps that (a bucket with versions, Nextcloud, ownCloud, some \
            extensions). --get writes one of these to a file, which may be the document itself: that is an edit like any \
            other. With --json it is one object.

            Example:
              promisefs versions /mnt/report.pdf --earlier
              promisefs versions /mnt/report.pdf --get 3HL4kqtJlcpXrof3 -o /mnt/report.pdf
            """)

    @Argument(help: "A document on a mount, or one of its unresolved versions.")
    var path: PathArgument
    @Flag(name: .long, help: "Also ask the provider for earlier versions.")
    var earlier = false
    @Option(name: .long, help: ArgumentHelp("Write this earlier version to the file of -o.", valueName: "version"))
    var get: String?
    @Option(name: .customShort("o"), help: ArgumentHelp("The file for --get; replaced when it is there.", valueName: "file"))
    var file: PathArgument?
    @OptionGroup var output: OutputOptions

    /// What `--get --json` shows.
    private struct Written: Encodable {
        var written: String
        var size: UInt64
    }

    func validate() throws {
        if (get == nil) != (file == nil) { throw ValidationError("--get says which version, and -o the file for it") }
    }

    func run() async throws {
        let document: VersionsDocument
        let mount: MountEntry
        do throws(PromiseError) {
            let location = try await Targets.location(of: path)
            mount = location.mount
            let client = try PromiseClient(mount: mount)
            if let get, let file { return try await write(get, of: location.path, to: file.bytes, client) }
            document = try await earlier ? client.versionsAndEarlier(of: location.path) : client.versions(of: location.path)
        } catch {
            throw CommandFailure(error)
        }
        if output.json { return Output.json(document) }
        Output.text(VersionsCommand.text(document, on: mount))
        if !earlier {
            Output.line("(\(document.note))")
        } else if !document.versions.contains(where: { $0.kind == "earlier" }) {
            Output.line("(the provider has kept no earlier version of it)")
        }
    }

    private func write(
        _ version: String, of document: [UInt8], to path: [UInt8], _ client: PromiseClient
    ) async throws(PromiseError) {
        let target = try EarlierVersionFile(path)
        let size = Mutex<UInt64>(0)
        do throws(PromiseError) {
            try await client.contents(ofEarlier: version, of: document) { bytes in
                try target.append(bytes)
                size.withLock { $0 += UInt64(bytes.count) }
            }
            try target.finish()
        } catch {
            target.discard()
            throw error
        }
        if output.json { Output.json(Written(written: escapedForDisplay(path), size: size.withLock { $0 })) }
    }

    static func text(_ document: VersionsDocument, on mount: MountEntry) -> String {
        let rows = document.versions.map { version in
            [
                version.kind, version.modificationTime, ByteSize.text(version.size), version.isLocal ? "local" : "not local",
                version.kind == "earlier" ? version.identifier : version.version ?? "not uploaded",
                shownPath(version.path, on: mount),
            ]
        }
        return table(rows)
    }
}

struct ConflictsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "conflicts",
        abstract: "List the documents that have unresolved versions, with all of their versions.",
        discussion: """
            Nothing is fetched. 'promisefs resolve' deals with them. With --json it is one object.

            Example:
              promisefs conflicts /mnt
            """)

    @Argument(help: "A document or a folder on a mount; of a folder everything below it is looked at.")
    var path: PathArgument
    @OptionGroup var output: OutputOptions

    /// What `--json` shows.
    private struct Document: Encodable {
        var documents: [VersionsDocument]
    }

    func run() async throws {
        do throws(PromiseError) {
            let location = try await Targets.location(of: path)
            let client = try PromiseClient(mount: location.mount)
            let documents = try await ConflictsCommand.documents(in: location.path, client)
            if output.json { return Output.json(Document(documents: documents)) }
            Output.text(documents.map { VersionsCommand.text($0, on: location.mount) }.joined(separator: "\n"))
        } catch {
            throw CommandFailure(error)
        }
    }

    private static func documents(in path: [UInt8], _ client: PromiseClient) async throws(PromiseError) -> [VersionsDocument] {
        var paths = [path]
        if try await client.information(path: path).kind == "folder" {
            let query = MetadataQuery("NSMetadataUbiquitousItemHasUnresolvedConflictsKey == YES").scope(path)
            paths = try await query.results(of: client).compactMap { PercentCoding.decode($0.pathBytes[...]) }
                .map { Array($0.drop { $0 == 0x2F }) }
        }
        var result: [VersionsDocument] = []
        var seen: Set<String> = []
        for path in paths {
            let document = try await client.versions(of: path)
            guard let first = document.versions.first, document.versions.contains(where: { $0.kind == "conflict" }) else {
                continue
            }
            if seen.insert(first.pathBytes).inserted { result.append(document) }
        }
        return result
    }
}

struct ResolveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resolve",
        abstract: "Say which version of a document is to stay after a conflict.",
        discussion: """
            --keep current removes the unresolved versions. --keep NAME makes that version the document's content and removes \
            the others, and what the document was. --keep both leaves all of them as documents of their own. What was written \
            since the versions were listed never goes: the exit status is 6 then. With --json it is one object: the versions \
            that are left.

            Example:
              promisefs versions /mnt/report.pdf
              promisefs resolve /mnt/report.pdf --keep current
            """)

    @Argument(help: "A document on a mount, or one of its unresolved versions.")
    var path: PathArgument
    @Option(
        name: .long,
        help: ArgumentHelp("'current', 'both', or the name of an unresolved version, or its identifier.", valueName: "version"))
    var keep: PathArgument
    @Option(
        name: .customLong("state"),
        help: ArgumentHelp(
            "A 'state' of 'versions --json' that this was decided on; repeatable. Without it: as they are now.",
            valueName: "state"))
    var states: [String] = []
    @OptionGroup var output: OutputOptions

    func run() async throws {
        Output.goesOnWithoutReader()
        do throws(PromiseError) {
            let location = try await Targets.location(of: path)
            let client = try PromiseClient(mount: location.mount)
            let versions = FileVersions(client)
            let all = try await versions.all(of: location.path)
            if !states.isEmpty, all.contains(where: { $0.state.map { !states.contains($0) } ?? false }) {
                throw PromiseError(
                    .local, "its versions are not those that this was decided on; list them again", exitStatus: 6)
            }
            // What was named may be one of the unresolved ones.
            let document = all.first?.path ?? location.path
            switch String(decoding: keep.bytes, as: UTF8.self) {
            case "current":
                guard all.contains(where: { $0.kind == .current }) else {
                    throw PromiseError(
                        .local, "the document was removed, and only these versions are left; keep 'both' or one of them",
                        exitStatus: 1)
                }
                try await versions.remove(of: document, listed: all)
            case "both": try await versions.markResolved(of: document)
            case let text:
                let wanted = name(of: keep.bytes)
                let version = all.first { $0.isConflict && ($0.id == text || name(of: $0.path) == wanted) }
                guard let version else {
                    let shown = escapedForDisplay(keep.bytes)
                    throw PromiseError(
                        .local, "there is no unresolved version '\(shown)'; 'promisefs versions' lists them", exitStatus: 1)
                }
                try await versions.replaceItem(at: document, with: version, of: all)
                if all.first?.kind == .current, all.count(where: \.isConflict) > 1 {
                    try await versions.remove(of: document, listed: all)
                }
            }
            // What is left of a document that was removed is a document now, under its own name.
            let left = try await client.versions(of: document)
            if output.json { return Output.json(left) }
            Output.text(VersionsCommand.text(left, on: location.mount))
        } catch {
            throw CommandFailure(error)
        }
    }

    private func name(of path: [UInt8]) -> ArraySlice<UInt8> {
        path.lastIndex(of: 0x2F).map { path[($0 + 1)...] } ?? path[...]
    }
}
