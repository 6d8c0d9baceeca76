import ArgumentParser
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
        subcommands: [Add.self, List.self, Remove.self])

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
        @OptionGroup var place: Place

        func run() async throws {
            let mount = try await Targets.mount(ofDomain: place.domain)
            let container = try await PromiseClient(mount: mount).addContainer(
                for: whose.app, name: name, isPublic: `public` ? true : nil)
            ContainerCommand.show(container, mount, place.output)
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List containers: the application, its name, and where the folder is.",
            discussion: """
                With --json it is one object, which also says whether the domain can be used now.

                Example:
                  promisefs container list --json
                """)
        @OptionGroup var place: Place

        func run() async throws {
            let mount = try await Targets.mount(ofDomain: place.domain)
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

    /// Scripts want the bytes of the path.
    private static func show(_ container: ContainerDocument, _ mount: MountEntry, _ output: OutputOptions) {
        if output.json { return Output.json(container) }
        guard let bytes = container.pathBytes.flatMap({ PercentCoding.decode($0[...]) }),
            let path = Location.absolutePath(of: Array(bytes.drop { $0 == 0x2F }), on: mount)
        else { return }
        Output.bytes(path)
    }
}
