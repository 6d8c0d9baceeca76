import ArgumentParser
import Glibc
import PromiseCore
import PromiseDomain
import PromiseKit
import PromiseWire

struct DomainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "domain",
        abstract: "List domains, also those that are not mounted, or forget one.",
        discussion: """
            Example:
              promisefs domain list
              promisefs domain forget documents
            """,
        subcommands: [DomainListCommand.self, DomainForgetCommand.self])
}

struct DomainListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the domains of this user, with what waits in them.",
        discussion: """
            Of domains that are not mounted those are found that lie in the usual place (or in PROMISEFS_STATE_DIR), and those \
            that were mounted with --state-dir from there. With --json it is an array.

            Example:
              promisefs domain list --json
            """)

    @OptionGroup var output: OutputOptions

    private struct Document: Encodable {
        var domain: String
        var mountPoint: String?
        /// Of somebody else's mount: whose it is.
        var owner: String?
        var stateFolder: String?
        var provider: String?
        /// Missing where it cannot be known, as `problem` says.
        var pending: Int?
        var problem: String?
    }

    func run() async throws {
        var documents: [Document] = []
        var mounted: [String: String?] = [:]
        for mount in try await Targets.mounts() {
            var document = Document(
                domain: mount.domain, mountPoint: escapedForDisplay(mount.mountPoint))
            if mount.user != geteuid() { document.owner = mount.userName }
            do throws(PromiseError) {
                let status = try await PromiseClient(mount: mount).status()
                document.stateFolder = status.stateFolder
                document.provider = status.provider
                document.pending = status.pending
            } catch {
                document.problem = error.message
            }
            if mount.user == geteuid() {
                mounted.updateValue(document.stateFolder, forKey: mount.domain)
            }
            documents.append(document)
        }
        for domain in try await UnmountedDomains.all(but: mounted) {
            documents.append(
                Document(
                    domain: domain.name, stateFolder: escapedForDisplay(domain.stateFolder),
                    provider: domain.provider,
                    pending: domain.pending, problem: domain.problem))
        }
        if output.json { return Output.json(documents) }
        if documents.isEmpty {
            return Output.line("there is no domain; try: promisefs mount --help")
        }
        let rows = documents.map { document in
            let waits = document.pending.map { SyncCommand.sentence($0) } ?? document.problem ?? ""
            return [
                document.domain + (document.owner.map { " of \($0)" } ?? ""),
                document.mountPoint ?? "not mounted",
                document.provider ?? "unknown provider", waits,
            ]
        }
        Output.text(table(rows))
    }
}

struct DomainForgetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget",
        abstract: "Remove what is kept here of a domain that is not mounted.",
        discussion: """
            What is at the provider stays. Ends with status 7, and nothing is done, when changes wait to be sent; --force \
            gives them up. Of several domains of one name --state-dir says which.

            Example:
              promisefs domain forget documents
            """)

    @Argument(help: "The domain's name.")
    var name: String
    @Flag(name: [.customShort("f"), .long], help: "Also when changes that were not sent are lost.")
    var force = false
    @Option(name: .long, help: ArgumentHelp("Where it lies, when it was mounted with this.", valueName: "dir"))
    var stateDir: PathArgument?
    @OptionGroup var output: OutputOptions

    private struct Document: Encodable {
        var domain: String
        var forgotten: Bool
        var pending: Int
    }

    func validate() throws {
        guard !name.isEmpty, !name.contains("/"), !name.hasPrefix(".") else {
            throw ValidationError("'\(name)' is no name of a domain")
        }
    }

    func run() async throws {
        Output.goesOnWithoutReader()
        let wanted = name
        let (given, losesWork) = (stateDir?.bytes, force)
        if let mount = try await Targets.ownMounts().first(where: { $0.domain == wanted }),
            try await isMeant(mount, given)
        {
            let place = escapedForDisplay(mount.mountPoint)
            throw CommandFailure("'\(name)' is mounted on \(place): unmount it first")
        }
        let pending = try await Blocking.run { () throws(CommandFailure) -> Int in
            let place = try UnmountedDomains.place(of: wanted, in: given)
            do {
                return try DomainForgetCommand.forget(place, losesWork: losesWork)
            } catch {
                throw CommandFailure(known: error) ?? CommandFailure("\(error)")
            }
        }
        let isForgotten = force || pending == 0
        if output.json {
            Output.json(Document(domain: name, forgotten: isForgotten, pending: pending))
        }
        guard isForgotten else {
            throw CommandFailure(
                "\(SyncCommand.sentence(pending)) to be sent in '\(name)'; mount it, or give that up with --force",
                exitStatus: ExitStatus.pending)
        }
        if !output.json { Output.line("'\(name)' is forgotten") }
    }
}

extension DomainForgetCommand {
    /// Whether it is the mounted one, and not another of its name: the state folder says so. While
    /// nobody answers for it, its lock keeps it from being forgotten.
    private func isMeant(_ mount: MountEntry, _ given: [UInt8]?) async throws -> Bool {
        guard let given else { return true }
        let folder = try await Blocking.run { [name] () throws(CommandFailure) in
            try UnmountedDomains.place(of: name, in: given).folder
        }
        let shown = try? await PromiseClient(mount: mount).status().stateFolder
        return shown.map { UnmountedDomains.isSame(folder, $0) } ?? false
    }

    /// Returns what waits to be sent. Blocking.
    private static func forget(_ place: StatePlaces.Place, losesWork: Bool) throws -> Int {
        try UnmountedDomain.removeAside(of: place.folder)
        let domain = try UnmountedDomain(stateFolder: place.folder, isGivenUp: losesWork)
        guard losesWork || domain.pendingCount == 0 else { return domain.pendingCount }
        if !losesWork, let kept = domain.keptFolder {
            throw CommandFailure(
                "what was kept aside is in '\(escapedForDisplay(kept))'; take it from there, or give it up with --force",
                exitStatus: ExitStatus.pending)
        }
        // Nobody has named the usual place, and what is there is ours.
        let isUsual = try BaseFolders.state(domain: place.name) == place.folder
        if !isUsual, let other = try domain.strangers().min(by: { $0.lexicographicallyPrecedes($1) }) {
            throw CommandFailure(
                "'\(escapedForDisplay(place.folder))' also has '\(escapedForDisplay(other))', which is none of the domain's: "
                    + "move that elsewhere before")
        }
        try domain.putAside()
        LastSettings.forget(place)
        StatePlaces.forget(place)
        try UnmountedDomain.removeAside(of: place.folder)
        return domain.pendingCount
    }
}

/// Domains that no daemon serves, as they lie in the usual place, or where they were mounted from.
enum UnmountedDomains {
    struct Found: Sendable {
        var name: String
        var stateFolder: [UInt8]
        var provider: String?
        var pending: Int?
        var problem: String?
    }

    /// `mounted`: this user's mounts by their names, with their state folders as they are shown, or
    /// nil where nobody answers.
    static func all(but mounted: [String: String?]) async throws(CommandFailure) -> [Found] {
        try await Blocking.run { () throws(CommandFailure) in
            unmounted(try StatePlaces.all(), but: mounted).map { look(at: $0.name, $0.folder) }
        }
    }

    /// Of several domains of one name one is mounted at most, and the others wait unseen.
    static func unmounted(
        _ places: [StatePlaces.Place], but mounted: [String: String?]
    ) -> [StatePlaces.Place] {
        let counts = Dictionary(grouping: places, by: \.name).mapValues(\.count)
        return places.filter { place in
            guard let folder = mounted[place.name] else { return true }
            // The only one of its name is the one that is mounted, however its folder is written.
            guard let folder, counts[place.name, default: 1] > 1 else { return false }
            return !isSame(place.folder, folder)
        }
    }

    /// `shown`: a state folder as its daemon tells it.
    static func isSame(_ folder: [UInt8], _ shown: String) -> Bool {
        if escapedForDisplay(simplified(folder)) == shown { return true }
        guard let real = realPath(folder) else { return false }
        return real == realPath(Array(shown.utf8))
    }

    /// The only one of this name, or the one that lies there. Blocking.
    static func place(of name: String, in given: [UInt8]?) throws(CommandFailure) -> StatePlaces.Place {
        if let given {
            do throws(PromiseError) {
                return StatePlaces.Place(name: name, folder: simplified(try absolutePath(given)))
            } catch {
                throw CommandFailure(error)
            }
        }
        let found = try StatePlaces.places(of: name)
        guard found.count < 2 else {
            let folders = found.map { "'\(escapedForDisplay($0.folder))'" }.joined(separator: " and ")
            throw CommandFailure(
                "there are domains '\(name)' in \(folders): say which with --state-dir", exitStatus: ExitStatus.usage)
        }
        if let only = found.first { return only }
        return StatePlaces.Place(name: name, folder: try BaseFolders.state(domain: name))
    }

    /// What to say of a word that is no path on a mount: nil when it is a path all the same. Blocking.
    static func sentence(for word: [UInt8]) -> PromiseError? {
        guard let name = String(validating: word, as: UTF8.self), DomainName.isValid(name),
            !SystemMounts.isAccessible(word, F_OK)
        else { return nil }
        var text = "there is no '\(name)' here, and no domain of this name; 'promisefs domain list' shows yours"
        if let found = try? place(of: name, in: nil), let domain = try? UnmountedDomain(stateFolder: found.folder) {
            let waits = SyncCommand.sentence(domain.pendingCount)
            text = "the domain '\(name)' is not mounted: \(waits) to be sent; 'promisefs mount' goes on with it"
            if domain.pendingCount == 0 { text = "the domain '\(name)' is not mounted; nothing is pending in it" }
        }
        return PromiseError(.notPromiseFS, text, exitStatus: ExitStatus.notPromiseFS)
    }

    /// What waits in those that nobody has mounted is easily forgotten.
    static func showWaiting() async throws {
        for domain in try await all(but: try await mounted()) {
            guard let pending = domain.pending, pending > 0 else { continue }
            let waits = SyncCommand.sentence(pending)
            Output.line("\(domain.name) is not mounted: \(waits) to be sent to \(domain.provider ?? "?")")
        }
    }

    /// This user's mounts, for `all`. Only those are asked of whose name there are several.
    private static func mounted() async throws -> [String: String?] {
        let mounts = try await Targets.ownMounts()
        let places = try await Blocking.run { () throws(CommandFailure) in try StatePlaces.all() }
        var result: [String: String?] = [:]
        for mount in mounts {
            var folder: String?
            if places.count(where: { $0.name == mount.domain }) > 1 {
                folder = try? await PromiseClient(mount: mount).status().stateFolder
            }
            result.updateValue(folder, forKey: mount.domain)
        }
        return result
    }

    private static func look(at name: String, _ folder: [UInt8]) -> Found {
        var result = Found(name: name, stateFolder: folder)
        do throws(Domain.StartFailure) {
            let domain = try UnmountedDomain(stateFolder: folder)
            (result.provider, result.pending) = (domain.provider, domain.pendingCount)
        } catch {
            result.problem = error.message
        }
        return result
    }
}
