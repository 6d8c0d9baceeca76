import ArgumentParser
import PromiseCore
import PromiseKit
import PromiseWire

struct InfoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "info",
        abstract: "Show every promised value of items: what is known without their content.",
        discussion: """
            Nothing is hydrated. With --json it is one object for one path, an array for several. With --key it is only what was \
            asked for, of many items at once; docs/QUERIES.md has the keys.

            Example:
              promisefs info /mnt/report.pdf
              promisefs info --key kMDItemFSSize --key promisefs.state /mnt/*
            """)

    @Argument(help: "Paths on a mount. Links are shown themselves.")
    var paths: [PathArgument]
    @Option(name: .long, help: ArgumentHelp("Show only this attribute; may be repeated.", valueName: "key"))
    var key: [String] = []
    @OptionGroup var output: OutputOptions

    func run() async throws {
        if !key.isEmpty { return try await showValues() }
        var failures = FailureCollector()
        var documents: [(item: ItemDocument, mount: MountEntry)] = []
        for path in paths {
            do throws(PromiseError) {
                let location = try await Targets.location(of: path)
                let client = try PromiseClient(mount: location.mount)
                documents.append((try await client.information(path: location.path), location.mount))
            } catch {
                // The daemon's sentence may speak of "the item"; here there may be several.
                let isAboutItem = if case .refused = error.kind { true } else { false }
                let subject = isAboutItem ? "\(escapedForDisplay(path.bytes)): " : ""
                failures.note(CommandFailure(subject + error.message, exitStatus: error.exitStatus))
            }
        }
        if !output.json {
            Output.text(documents.map { InfoCommand.text($0.item, on: $0.mount) }.joined(separator: "\n"))
        } else {
            printJSON(documents.map(\.item))
        }
        try failures.finish()
    }

    /// One object for one path, an array for several, whatever of them could be told.
    private func printJSON(_ documents: [some Encodable]) {
        if paths.count > 1 {
            Output.json(documents)
        } else if let document = documents.first {
            Output.json(document)
        }
    }

    private func showValues() async throws {
        var failures = FailureCollector()
        var documents: [PromisedItemDocument] = []
        for (mount, locations) in await Targets.byDomain(paths, &failures) {
            do throws(PromiseError) {
                let client = try PromiseClient(mount: mount)
                let values = try await client.promisedValues(key.map { PromisedKey(rawValue: $0) }, of: locations.map(\.path))
                documents += values.items
                for item in values.items where !output.json {
                    let rows = item.values.sorted { $0.key < $1.key }.map { ["  \($0.key)", WireCoding.text($0.value)] }
                    Output.text(shownPath(item.path, on: mount) + "\n" + table(rows))
                }
                noteFailures(values.failures, on: mount, &failures)
            } catch {
                failures.note(CommandFailure(error))
            }
        }
        if output.json { printJSON(documents) }
        try failures.finish()
    }

    static func text(_ item: ItemDocument, on mount: MountEntry) -> String {
        let octal = String(item.mode, radix: 8)
        var rows = [
            ["  domain", mount.domain],
            ["  kind", item.kind],
            ["  state", item.state + (item.isConflict ? " (one of two versions of a conflict)" : "")],
            ["  pin", item.pin],
            ["  size", "\(ByteSize.text(item.size)) (\(item.size) bytes)"],
            ["  local", "\(ByteSize.text(item.localBytes)) (\(item.localBytes) bytes)"],
            ["  mode", String(repeating: "0", count: max(4 - octal.count, 0)) + octal],
            ["  owner", "\(item.owner):\(item.group)"],
            ["  modified", item.modificationTime],
            ["  changed", item.changeTime],
            ["  accessed", item.accessTime],
            ["  created", item.birthTime],
            ["  links", "\(item.links)"],
            ["  node", "\(item.node)"],
            ["  identifier", item.identifier ?? "none yet"],
            ["  version", item.version ?? "none"],
        ]
        if let target = item.linkTarget { rows.append(["  target", target]) }
        if let names = item.attributes {
            rows.append(["  attributes", names.joined(separator: ", ") + " (other machines have them, too)"])
        }
        if let names = item.localAttributes {
            rows.append(["  attributes", names.joined(separator: ", ") + " (they stay on this machine)"])
        }
        if let reference = item.reference {
            let place = reference.domain.map { " in the domain '\($0)'" } ?? ""
            let text = reference.reason.map { "leads nowhere: \($0)" } ?? "follows its document" + place
            rows.append(["  reference", text])
        }
        if case .text(let type)? = item.values?[PromisedKey.contentType.rawValue] { rows.append(["  type", type]) }
        if case .list(let tags)? = item.values?[PromisedKey.userTags.rawValue] {
            rows.append(["  tags", tags.compactMap { if case .text(let tag) = $0 { tag } else { nil } }.joined(separator: ", ")])
        }
        if let progress = item.progress { rows.append(["  progress", "\(decimal(progress * 100)) %"]) }
        if let error = item.error { rows.append(["  error", Terminal.styled(error, .red)]) }
        return shownPath(item.path, on: mount) + "\n" + table(rows)
    }
}
