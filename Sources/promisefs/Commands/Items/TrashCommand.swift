import ArgumentParser
import PromiseCore
import PromiseKit
import PromiseWire

struct TrashCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trash",
        abstract: "List what was removed on a mount, and bring it back.",
        discussion: """
            What programs remove stays on this machine for 30 days (`trash` in the configuration), unless its room is wanted \
            before: whole files whose content is here, folders and links. What a placeholder stands for is not kept, and \
            listed as that. What was removed elsewhere is in the trash there. With --provider it is what the provider itself \
            keeps, whoever removed it: Nextcloud, ownCloud, and some extensions do.

            Example:
              promisefs trash list /mnt
              promisefs trash restore /mnt/report.odt
              promisefs trash restore --provider /mnt/large.mp4
            """,
        subcommands: [List.self, Restore.self, Empty.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "List what was removed: when, its size, and where it was; the newest first.",
            discussion: """
                A file that was not on this machine is not kept, and cannot come back from here; the newest 1,000 of them are \
                listed. Without PATH all mounted domains are listed. With --json it is one object for a PATH, an array without.

                Example:
                  promisefs trash list /mnt/letters
                """)
        @Argument(
            help:
                "A path on a mount, also of what was removed there, or a domain: only what was below it."
        )
        var path: PathArgument?
        @Flag(name: .long, help: "What the provider keeps, whoever removed it.")
        var provider = false
        @OptionGroup var output: OutputOptions

        /// A domain's part of `--json`.
        private struct Document: Encodable {
            var domain: String
            var mountPoint: String
            var items: [TrashItemDocument]
        }

        func run() async throws {
            var failures = FailureCollector()
            var documents: [Document] = []
            var rows: [[String]] = []
            for (mount, inner) in try await scope(path, namesDomain: true) {
                do throws(PromiseError) {
                    let items = try await Trash(PromiseClient(mount: mount))
                        .list(below: inner, atProvider: provider).items
                    documents.append(
                        Document(
                            domain: mount.domain, mountPoint: escapedForDisplay(mount.mountPoint),
                            items: items))
                    rows += items.map { item in
                        let isFile = item.kind == "file"
                        return [
                            String(item.removed.prefix(19)) + "Z",
                            isFile ? ByteSize.text(item.size) : item.kind,
                            shownPath(item.path, on: mount)
                                + (item.isKept == false ? " (not kept: was not on this machine)" : ""),
                        ]
                    }
                } catch {
                    failures.note(CommandFailure(error))
                }
            }
            if !output.json {
                Output.text(
                    rows.isEmpty && failures.first == nil
                        ? "nothing was removed that is kept\n" : table(rows))
            } else if path == nil {
                Output.json(documents)
            } else if let document = documents.first {
                Output.json(document)
            }
            try failures.finish()
        }
    }

    struct Restore: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Bring back what was removed.",
            discussion: """
                The newest that was removed at PATH comes back as a new item under its name, with its mode, time and user \
                attributes; a folder with what was removed with it. Of a folder that is there, all that was removed below it. \
                What is there is never replaced: a name that is taken ends with status 6; with --to a free one is taken. With \
                --provider it comes back at the provider, to where it was, and is seen here then. With --json it is one object \
                for one domain, an array for several.

                Example:
                  promisefs trash restore /mnt/report.odt
                  promisefs trash restore /mnt/report.odt --to /mnt/old
                """)
        @Argument(help: "Paths on a mount at which something was removed.")
        var paths: [PathArgument]
        @Option(
            name: .long,
            help: ArgumentHelp(
                "Bring it to this folder of the same mount instead.", valueName: "dir"))
        var to: PathArgument?
        @Flag(name: .long, help: "What the provider keeps, whoever removed it.")
        var provider = false
        @OptionGroup var output: OutputOptions

        func validate() throws {
            if provider, to != nil {
                throw ValidationError("--provider brings back to where it was, and --to says another place")
            }
        }

        func run() async throws {
            Output.goesOnWithoutReader()
            var failures = FailureCollector()
            var documents: [RestoreDocument] = []
            for (mount, locations) in await Targets.byDomain(paths, &failures) {
                do throws(PromiseError) {
                    let folder = try await folder(on: mount)
                    let result = try await Trash(PromiseClient(mount: mount)).restore(
                        locations.map(\.path), to: folder, atProvider: provider)
                    documents.append(result)
                    if !output.json {
                        for place in result.places { Output.line(shownPath(place.path, on: mount)) }
                        if result.restored != result.places.count {
                            Output.line("\(counted(result.restored, "item")) brought back")
                        }
                    }
                    noteFailures(result.failures, on: mount, &failures)
                } catch {
                    failures.note(CommandFailure(error))
                }
            }
            if output.json { printDocuments(documents) }
            try failures.finish()
        }

        private func folder(on mount: MountEntry) async throws(PromiseError) -> [UInt8]? {
            guard let to else { return nil }
            let location = try await Targets.location(of: to)
            guard location.mount.isOfSameDomain(as: mount) else {
                throw PromiseError(
                    .local,
                    "--to is a folder of the domain '\(mount.domain)', to which what was removed belongs",
                    exitStatus: ExitStatus.usage)
            }
            return location.path
        }
    }

    struct Empty: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give up for good what was removed.",
            discussion: """
                With --json it is one object.

                Example:
                  promisefs trash empty /mnt
                """)
        @Argument(help: "A path on a mount, or a domain: what was removed below it.")
        var path: PathArgument
        @OptionGroup var output: OutputOptions

        func run() async throws {
            Output.goesOnWithoutReader()
            do throws(PromiseError) {
                let location = try await Targets.location(of: path)
                let inner = location.path.isEmpty ? nil : location.path
                let gone = try await Trash(PromiseClient(mount: location.mount)).empty(below: inner)
                if output.json { return Output.json(gone) }
                Output.line(
                    "\(counted(gone.emptied, "item")) given up, \(ByteSize.text(gone.bytesFreed)) freed"
                )
            } catch {
                throw CommandFailure(error)
            }
        }
    }
}
