import PromiseCore
import PromiseKit
import PromiseWire

/// One run of an application, which has a view of one domain.
public struct PickerLaunch: Sendable {
    public var number: String
    public var domain: String

    public init(_ number: String, of domain: String) {
        self.number = number
        self.domain = domain
    }

    /// Where its view has `imports`, in the domain's own mount.
    var imports: PickerFolder {
        PickerFolder(domain: domain, path: Array(".promisefs-views/\(number)/imports".utf8))
    }
}

/// For as long as the launch is under way; keeping it for longer is the application's own act.
struct LaunchGrants: PickerGrants {
    let data: MountedData
    let launch: PickerLaunch

    init(_ data: MountedData, _ launch: PickerLaunch) {
        self.data = data
        self.launch = launch
    }

    func grant(_ item: PickerItem, to application: String) async throws -> PickedDocument {
        guard item.domain == launch.domain else {
            throw PromiseError(
                .local, "\(application) has a view of '\(launch.domain)' alone", exitStatus: 5)
        }
        let client = try data.client(of: item.domain)
        var result = PickedDocument(path: try data.absolutePath(of: item.path, in: item.domain))
        let keeper = ReferenceKeeper(data, client, application)
        let container = try await keeper.container
        // What is in the container is the application's already.
        if let container, !keeper.isOutside(item, container) { return result }
        result.grant = try await client.give(item.path, to: application, launch: launch.number).id
        guard let container else { return result }
        // It waits for the provider: the application does not.
        Task { try? await keeper.reference(to: item, in: container) }
        return result
    }
}

/// Until somebody revokes it, with a bookmark that finds the item again, and a reference in the
/// application's container.
struct LastingGrants: PickerGrants {
    let data: MountedData

    init(_ data: MountedData) { self.data = data }

    func grant(_ item: PickerItem, to application: String) async throws -> PickedDocument {
        let client = try data.client(of: item.domain)
        var result = PickedDocument(path: try data.absolutePath(of: item.path, in: item.domain))
        let keeper = ReferenceKeeper(data, client, application)
        let container = try await keeper.container
        // What is in the container is the application's already.
        if container.map({ keeper.isOutside(item, $0) }) ?? true {
            result.grant = try await client.give(item.path, to: application).id
        }
        result.bookmark = try await client.bookmark(of: item.path, for: application)
        if let container, keeper.isOutside(item, container) {
            // Where the provider cannot be asked the grant is there all the same.
            result.reference = try? await keeper.reference(to: item, in: container)
        }
        return result
    }
}

/// References in an application's own folder.
struct ReferenceKeeper: Sendable {
    let data: MountedData
    let client: PromiseClient
    let application: String

    init(_ data: MountedData, _ client: PromiseClient, _ application: String) {
        self.data = data
        self.client = client
        self.application = application
    }

    /// Bytes from the root of the domain; nil where it has none.
    var container: [UInt8]? {
        get async throws(PromiseError) {
            let containers = try await client.containers().containers
            guard let own = containers.first(where: { $0.application == application }),
                let bytes = own.pathBytes.flatMap({ PercentCoding.decode($0[...]) })
            else { return nil }
            return Array(bytes.drop { $0 == 0x2F })
        }
    }

    func isOutside(_ item: PickerItem, _ container: [UInt8]) -> Bool {
        !item.path.starts(with: container + [0x2F])
    }

    /// The one there is, or a new one; its absolute path.
    @discardableResult
    func reference(to item: PickerItem, in container: [UInt8]) async throws -> [UInt8]? {
        let documents = container + Array("/Documents".utf8)
        let known = try await client.references(below: documents).first {
            PercentCoding.decode($0.targetBytes[...]).map { Array($0.drop { $0 == 0x2F }) }
                == item.path
        }
        let reference = try await reference(known, to: item, in: documents)
        let place = PercentCoding.decode(reference.pathBytes[...]).map {
            Array($0.drop { $0 == 0x2F })
        }
        return try place.map { try data.absolutePath(of: $0, in: item.domain) }
    }

    /// The one there is, or a new one, with a number where the name is taken.
    private func reference(
        _ known: ReferenceDocument?, to item: PickerItem, in folder: [UInt8]
    ) async throws -> ReferenceDocument {
        if let known { return known }
        var last: PromiseError?
        for number in 1...50 {
            let name = number == 1 ? item.name : FileWork.numbered(item.name, number)
            do throws(PromiseError) {
                return try await client.addReference(to: item.path, at: folder + [0x2F] + name)
            } catch {
                guard case .refused(let problem) = error.kind, problem.code == "exists" else {
                    throw error
                }
                last = error
            }
        }
        throw last ?? PromiseError(.local, "no name is free", exitStatus: 1)
    }
}
