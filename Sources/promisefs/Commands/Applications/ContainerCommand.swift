import ArgumentParser
import Foundation
import PromiseCore
import PromiseKit
import PromiseWire

struct ContainerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "container",
        abstract: "Folders that belong to an application.",
        discussion: """
            A container is a folder of a domain with 'Documents' in it, known as that application's on every machine. It may be \
            renamed and moved like any folder, and stays the container.

            Example:
              promisefs container add --app com.example.editor --name Editor
              promisefs container list
            """,
        subcommands: [Add.self, List.self, Icon.self, Remove.self])

    /// The domain in which to look.
    struct Place: ParsableArguments {
        @Argument(help: ArgumentHelp("The domain; needed where several are mounted.", valueName: "domain"))
        var domain: String?
        @OptionGroup var output: OutputOptions
    }

    struct Whose: ParsableArguments {
        @Option(
            name: .long,
            help: ArgumentHelp("The application, as com.example.editor.", valueName: "id"))
        var app: String
    }

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give an application a container, and print its path.",
            discussion: """
                It gets the one that it has on any machine, or a new folder. With --json it is one object.

                Example:
                  promisefs container add --app com.example.editor --name Editor --public
                """)
        @OptionGroup var whose: Whose
        @Option(name: .long, help: ArgumentHelp("What people call it.", valueName: "name"))
        var name: String?
        @Flag(name: .long, help: "Other applications may see what is in its 'Documents'.")
        var `public` = false
        @Option(name: .long, help: ArgumentHelp("A PNG file of at most 64 KiB.", valueName: "file"))
        var icon: PathArgument?
        @OptionGroup var place: Place

        func validate() throws { if let name { try RawArguments.checkIsText(name, "the name") } }

        func run() async throws {
            let mount = try await Targets.mount(ofDomain: place.domain)
            let container = try await PromiseClient(mount: mount).addContainer(
                for: whose.app, name: name, isPublic: `public` ? true : nil,
                icon: try icon.map { try ContainerCommand.contents(of: $0) })
            ContainerCommand.show(container, mount, place.output)
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List containers: the application, its name, and where the folder is.",
            discussion: """
                With --json it is one object, which also says whether the domain can be used now. With --watch it says \
                only that, and again whenever it changes.

                Example:
                  promisefs container list --json
                """)
        @Flag(name: .long, help: "Say whether the domain can be used, and go on with what changes.")
        var watch = false
        @OptionGroup var place: Place

        func run() async throws {
            let mount = try await Targets.mount(ofDomain: place.domain)
            if watch { return try await ContainerCommand.watch(mount, place.output) }
            let document = try await PromiseClient(mount: mount).containers()
            if place.output.json { return Output.json(document) }
            Output.text(
                table(
                    document.containers.map { container in
                        [
                            container.application,
                            escapedForDisplay(container.name.utf8) + (container.isPublic ? " (public)" : ""),
                            container.path.map { shownPath($0, on: mount) } ?? "- \(container.reason ?? "")",
                        ]
                    }))
            if let trouble = document.trouble { Output.problem(trouble) }
        }
    }

    struct Icon: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write the icon of a container to a file.",
            discussion: """
                With --json it is one object.

                Example:
                  promisefs container icon --app com.example.editor -o icon.png
                """)
        @OptionGroup var whose: Whose
        @Option(name: [.customShort("o"), .long], help: ArgumentHelp("The file to write.", valueName: "file"))
        var out: PathArgument
        @OptionGroup var place: Place

        private struct Document: Encodable {
            var application: String
            var bytes: Int
        }

        func run() async throws {
            let mount = try await Targets.mount(ofDomain: place.domain)
            let picture = try await PromiseClient(mount: mount).containerIcon(of: whose.app)
            let file = out.bytes
            do throws(PromiseError) {
                try await Blocking.run { () throws(PromiseError) in try ThumbnailCommand.write(picture, to: file) }
            } catch {
                throw CommandFailure(error)
            }
            if place.output.json { Output.json(Document(application: whose.app, bytes: picture.count)) }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Take a container from an application; its folder stays.",
            discussion: """
                With --json it is one object.

                Example:
                  promisefs container remove --app com.example.editor
                """)
        @OptionGroup var whose: Whose
        @OptionGroup var place: Place

        func run() async throws {
            let mount = try await Targets.mount(ofDomain: place.domain)
            let container = try await PromiseClient(mount: mount).removeContainer(of: whose.app)
            ContainerCommand.show(container, mount, place.output)
        }
    }

    private static let iconByteCountMax = 65_536

    private static func contents(of file: PathArgument) throws -> [UInt8] {
        guard let data = FileManager.default.contents(atPath: String(decoding: file.bytes, as: UTF8.self)) else {
            throw CommandFailure("'\(escapedForDisplay(file.bytes))' cannot be read", exitStatus: ExitStatus.failed)
        }
        // More would not be taken in one request.
        guard data.count <= iconByteCountMax else {
            throw CommandFailure(
                "an icon is a PNG file of at most \(iconByteCountMax) bytes", exitStatus: ExitStatus.failed)
        }
        return Array(data)
    }

    /// Until the daemon ends.
    private static func watch(_ mount: MountEntry, _ output: OutputOptions) async throws {
        Interruption.ends()
        var events = try await PromiseClient(mount: mount).availabilityEvents().makeAsyncIterator()
        while let event = try await events.next() {
            guard let now = WireCoding.decode(AvailabilityDocument.self, from: Array(event.data.utf8)) else { continue }
            if output.json {
                Output.json(now)
            } else {
                let reason = now.connectionMessage ?? ""
                Output.line(now.isReachable ? "\(now.domain) can be used" : "\(now.domain) cannot be used: \(reason)")
            }
        }
    }

    /// Scripts want the bytes of the path.
    private static func show(_ container: ContainerDocument, _ mount: MountEntry, _ output: OutputOptions) {
        if output.json { return Output.json(container) }
        guard let bytes = container.pathBytes.flatMap({ PercentCoding.decode($0[...]) }),
            let path = Location.absolutePath(of: Array(bytes.drop { $0 == 0x2F }), on: mount)
        else { return }
        Output.bytes(path)
    }
}
