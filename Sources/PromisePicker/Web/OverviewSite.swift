import PromiseCore
public import PromiseKit
import PromiseSystem
import PromiseWire

/// The page to look after all domains: what they are, what is under way, what is wrong and what to
/// do about it.
public struct OverviewSite: WebSite {
    static let workCountMax = 200
    static let itemCountMax = 100

    private let mounts: @Sendable () throws -> [MountEntry]
    private let watch: OverviewWatch

    /// `mounts` is asked each time: domains come and go.
    public init(mounts: @escaping @Sendable () throws -> [MountEntry]) {
        self.mounts = mounts
        watch = OverviewWatch(mounts)
    }

    public var title: String { "PromiseFS" }
    public var script: String { OverviewScript.text }

    public func answer(_ request: WebRequest) async -> WebResponse {
        do {
            switch (request.method, request.path) {
            case ("GET", "/overview"): return .json(try await overview(request))
            case ("GET", "/grants"): return .json(try await grants(request))
            case ("POST", "/revoke"): return .json(try await revoke(try choice(request)))
            case ("GET", "/storage"):
                let mount = try mount(request.query["domain"])
                return .json(try await OverviewStorage.kept(in: mount, request.query["order"]))
            case ("GET", "/conflicts"): return .json(try await conflicts(request))
            case ("POST", "/difference"): return .json(try await difference(try choice(request)))
            case ("POST", "/resolve"): return .json(try await resolve(try choice(request)))
            case ("POST", "/item"): return .json(try await act(try choice(request)))
            default: return .text("no such page", status: 404)
            }
        } catch {
            return .json(Problem(error: escapedForTerminal("\(error)")), status: 409)
        }
    }

    private struct Problem: Encodable { var error: String }
    struct Done: Encodable { var text: String }

    /// What a person has decided.
    struct Choice: Decodable {
        var domain: String
        /// Percent-encoded bytes from the root of the domain.
        var path: String
        var action: String?
        var version: String?
        var states: [String]?
        var grant: Int64?
    }

    private func choice(_ request: WebRequest) throws -> Choice {
        guard let choice = WireCoding.decode(Choice.self, from: request.body) else {
            throw PromiseError(.local, "that is no choice of this page", exitStatus: 2)
        }
        return choice
    }

    private func bytes(_ path: String) throws -> [UInt8] {
        guard let bytes = PercentCoding.decode(path[...]), !bytes.contains(0) else {
            throw PromiseError(.local, "that is no path", exitStatus: 2)
        }
        return Array(bytes.drop { $0 == 0x2F })
    }

    func mount(_ domain: String?) throws -> MountEntry {
        guard let mount = try mounts().first(where: { $0.domain == domain }) else {
            throw PromiseError(.notPromiseFS, "that domain is not mounted any more", exitStatus: 3)
        }
        return mount
    }

    // MARK: Domains

    private struct Overview: Encodable {
        struct Domain: Encodable {
            var name: String
            var mountPoint: String
            var status: StatusDocument?
            var pending: [PendingItemDocument]
            var pendingCount: Int
            var problem: String?
        }

        var domains: [Domain]
        /// What is asked with next: an answer then comes when there is something new.
        var version: Int
    }

    /// One whose daemon says nothing holds up no other.
    private static func domain(of mount: MountEntry) async -> Overview.Domain {
        let silent = Overview.Domain(
            name: mount.domain, mountPoint: escapedForDisplay(mount.mountPoint), pending: [],
            pendingCount: 0)
        let told = await Patience.answer { () async -> Overview.Domain in
            var domain = silent
            do throws(PromiseError) {
                let client = try PromiseClient(mount: mount)
                domain.status = try await client.status()
                let work = try await client.pending().items
                domain.pending = Array(work.prefix(OverviewSite.workCountMax))
                domain.pendingCount = work.count
            } catch {
                domain.problem = error.message
            }
            return domain
        }
        if let told { return told }
        var domain = silent
        domain.problem = "its daemon does not answer"
        return domain
    }

    private func overview(_ request: WebRequest) async throws -> Overview {
        let version = await watch.version(after: Int(request.query["after"] ?? "") ?? -1)
        let mounts = try mounts()
        let domains = await withTaskGroup(of: (Int, Overview.Domain).self) { group in
            for (number, mount) in mounts.enumerated() {
                group.addTask { (number, await OverviewSite.domain(of: mount)) }
            }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }.sorted { $0.key < $1.key }.map(\.value)
        watch.isBusy = domains.contains { !$0.pending.isEmpty }
        return Overview(domains: domains, version: version)
    }

    // MARK: Changes

    private func act(_ choice: Choice) async throws -> Done {
        let client = try PromiseClient(mount: try mount(choice.domain))
        let path = try bytes(choice.path)
        switch choice.action {
        case "evict":
            let report = try await client.evict([path])
            if let failure = report.failures.first {
                throw PromiseError(.local, failure.detail, exitStatus: 1)
            }
            return Done(text: report.kept.first?.reason ?? "evicted")
        case "pin", "unpin":
            let done = try await client.setPin(
                choice.action == "pin" ? "pinned" : "automatic", of: [path])
            if let failure = done.failures.first {
                throw PromiseError(.local, failure.detail, exitStatus: 1)
            }
            return Done(text: done.pin)
        default: throw PromiseError(.local, "evict, pin or unpin", exitStatus: 2)
        }
    }

    // MARK: Conflicts

    private struct Conflicts: Encodable { var documents: [VersionsDocument] }

    private func conflicts(_ request: WebRequest) async throws -> Conflicts {
        let client = try PromiseClient(mount: try mount(request.query["domain"]))
        let query = MetadataQuery("NSMetadataUbiquitousItemHasUnresolvedConflictsKey == YES")
            .limit(OverviewSite.itemCountMax)
        var documents: [VersionsDocument] = []
        var seen: Set<String> = []
        for item in try await query.results(of: client) {
            let document = try await client.versions(of: try bytes(item.pathBytes))
            guard let first = document.versions.first,
                document.versions.contains(where: { $0.kind == "conflict" }),
                seen.insert(first.pathBytes).inserted
            else { continue }
            documents.append(document)
        }
        return Conflicts(documents: documents)
    }

    /// Of the document and one of its versions, by lines. Reading them brings their content here: a
    /// person has asked.
    private func difference(_ choice: Choice) async throws -> TextDifference {
        let mount = try mount(choice.domain)
        let versions = try await PromiseClient(mount: mount).versions(of: try bytes(choice.path))
            .versions
        guard let ours = versions.first,
            let other = versions.first(where: { $0.identifier == choice.version })
        else {
            throw PromiseError(.local, "that version is gone", exitStatus: 1)
        }
        guard max(ours.size, other.size) <= UInt64(TextDifference.byteCountMax) else {
            return TextDifference(note: "they are too long to be compared here")
        }
        var contents: [[UInt8]] = []
        for version in [ours, other] {
            let path = Location.absolutePath(of: try bytes(version.pathBytes), on: mount)
            let content = try await FileWork.run {
                path.flatMap { readSmallFile($0, countMax: TextDifference.byteCountMax + 1) }
            }
            // One that cannot be read is no empty one.
            guard let content else {
                return TextDifference(
                    note: "'\(version.path)' cannot be read now, so that they cannot be compared")
            }
            contents.append(content)
        }
        return TextDifference(from: contents[0], to: contents[1])
    }

    /// `states` are of the versions that the person saw: what was written since is never destroyed.
    private func resolve(_ choice: Choice) async throws -> Done {
        let client = try PromiseClient(mount: try mount(choice.domain))
        let path = try bytes(choice.path)
        let versions = FileVersions(client)
        let all = try await versions.all(of: path)
        let seen = all.filter { version in
            version.state.map { choice.states?.contains($0) ?? false } ?? true
        }
        switch choice.action {
        case "current": try await versions.remove(of: path, listed: seen)
        case "both": try await versions.markResolved(of: path)
        case "version":
            guard let version = seen.first(where: { $0.id == choice.version }) else {
                throw PromiseError(
                    .local, "it has changed meanwhile; look at it again", exitStatus: 6)
            }
            try await versions.replaceItem(at: path, with: version, of: seen)
        default: throw PromiseError(.local, "current, version or both", exitStatus: 2)
        }
        return Done(text: "resolved")
    }
}
