import ArgumentParser
import PromiseCore
import PromiseKit
import PromiseWire

struct ReferenceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reference",
        abstract: "Links that stand for a document and follow it.",
        discussion: """
            A reference is a symbolic link in the mount that leads to its document wherever that is renamed or moved, on every \
            machine. The document is in the same domain or in another one of yours, which is to be mounted, too. A reference can \
            be renamed, moved and removed like any link; the document stays.

            Example:
              promisefs reference add /mnt/projects/plan.md /mnt/desk
              promisefs reference list /mnt/desk
            """,
        subcommands: [Add.self, List.self, Remove.self])

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a link that follows a document.",
            discussion: """
                It is made at PLACE, or in it where that is a folder, once the provider has the document. With --json it is one \
                object.

                Example:
                  promisefs reference add /mnt/projects/plan.md /mnt/desk/plan.md
                """)
        @Argument(help: "The document.") var target: PathArgument
        @Argument(help: "Where the link is to be.") var place: PathArgument
        @OptionGroup var output: OutputOptions

        func run() async throws {
            let document = try await Targets.location(of: target)
            let location = try await Targets.location(of: place)
            let client = try PromiseClient(mount: location.mount)
            let made: ReferenceDocument
            if document.mount.isOfSameDomain(as: location.mount) {
                made = try await client.addReference(to: document.path, at: location.path)
            } else {
                guard document.mount.user == location.mount.user else {
                    throw CommandFailure(
                        "\(escapedForDisplay(target.bytes)) is in a domain of \(document.mount.userName): "
                            + "a reference stands for a document of a domain of the same user")
                }
                let other = try PromiseClient(mount: document.mount)
                made = try await client.addReference(to: document.path, of: other, at: location.path)
            }
            if output.json { return Output.json(made) }
            Output.line(shownPath(made.path, on: location.mount))
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List references and what they lead to.",
            discussion: """
                Below a folder, as far as it is known on this machine. With --json it is one object.

                Example:
                  promisefs reference list /mnt
                """)
        @Argument(help: "A folder on a mount, or one reference; without, all of the domain.")
        var path: PathArgument?
        @OptionGroup var output: OutputOptions

        func run() async throws {
            let mount: MountEntry
            var folder: [UInt8] = []
            if let path {
                let location = try await Targets.location(of: path)
                (mount, folder) = (location.mount, location.path)
            } else {
                mount = try await Targets.mount(ofDomain: nil)
            }
            let found = try await PromiseClient(mount: mount).references(below: folder)
            if output.json { return Output.json(ReferencesDocument(references: found)) }
            Output.text(
                table(
                    found.map { reference in
                        let target = shownTarget(of: reference, on: mount)
                        let reason = reference.reason.map { " (leads nowhere: \($0))" } ?? ""
                        return [shownPath(reference.path, on: mount), "-> \(target)\(reason)"]
                    }))
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove a reference; the document stays.",
            discussion: """
                With --json it is one object.

                Example:
                  promisefs reference remove /mnt/desk/plan.md
                """)
        @Argument(help: "The reference.") var place: PathArgument
        @OptionGroup var output: OutputOptions

        func run() async throws {
            let location = try await Targets.location(of: place)
            let removed = try await PromiseClient(mount: location.mount).removeReference(at: location.path)
            if output.json { Output.json(removed) }
        }
    }
}

/// A document of another domain is shown with its whole path, or by the path in its domain when that
/// is not mounted.
private func shownTarget(of reference: ReferenceDocument, on mount: MountEntry) -> String {
    if let place = reference.place, let bytes = PercentCoding.decode(place[...]) {
        return escapedForDisplay(bytes)
    }
    let isElsewhere = reference.domain != nil || reference.state == "notMounted"
    return isElsewhere ? reference.target : shownPath(reference.target, on: mount)
}
