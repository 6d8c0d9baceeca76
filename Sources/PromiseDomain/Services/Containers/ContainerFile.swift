import Glibc
import PromiseAccess
import PromiseCore
import PromiseKeyValue
import PromiseSystem

/// `containers.json` in the state folder: what is known of containers without the provider.
/// Blocking; one thread at a time.
struct ContainerFile: Sendable {
    static let schema = 1
    static let byteCountMax = 64 << 20

    let path: [UInt8]

    /// None when there is no file. One that cannot be read is not taken for an empty one.
    func read() throws(Failure) -> [Key: KnownContainer] {
        do throws(SystemError) {
            _ = try FileStatus.of(path, label: "containers.status")
        } catch {
            if error.errno == ENOENT { return [:] }
            throw Failure(error)
        }
        let shown = escapedForDisplay(path)
        guard let bytes = readSmallFile(path, countMax: ContainerFile.byteCountMax) else {
            throw Failure(.inputOutput, "'\(shown)' cannot be read: check the disk")
        }
        do throws(RecordTrouble) {
            guard let json = JSONReader.read(bytes), let fields = json["containers"]?.fields,
                let schema = json["schema"]?.integer(Int.self)
            else { throw .damaged }
            if schema > ContainerFile.schema { throw .newer(schema: schema) }
            var result: [Key: KnownContainer] = [:]
            for (application, container) in fields {
                result[application] = try KnownContainer(container, of: application)
            }
            return result
        } catch {
            switch error {
            case .damaged:
                throw Failure(
                    .corrupted,
                    "'\(shown)' is damaged: remove it to get the containers that the provider has")
            case .newer(let schema):
                throw Failure(
                    .corrupted,
                    "'\(shown)' has schema \(schema), of a newer version of this program: install that"
                )
            }
        }
    }

    /// The old file or the new one is there after a power cut. Returns when it is on the disk.
    func write(_ containers: [Key: KnownContainer]) throws(Failure) {
        let json = JSON.map([
            "schema": .number(String(ContainerFile.schema)),
            "containers": .map(containers.mapValues(\.json)),
        ])
        try replaceStateFile(path, by: json.encoded)
    }
}

/// A file of the state folder, for its owner alone.
func replaceStateFile(_ path: [UInt8], by bytes: [UInt8]) throws(Failure) {
    let draft = path + Array(".new".utf8)
    let folder = Array(path[..<(path.lastIndex(of: 0x2F) ?? 0)])
    do throws(SystemError) {
        let file = try Descriptor.open(
            draft, flags: O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600, label: "state.create")
        try writeFully(file.number, bytes, at: 0, label: "state.write")
        try synchronize(file.number, dataOnly: false, label: "state.sync")
        try rename(draft, to: path, label: "state.rename")
        let names = try Descriptor.open(
            folder, flags: O_RDONLY | O_DIRECTORY, label: "state.names")
        try synchronize(names.number, dataOnly: false, label: "state.syncNames")
    } catch {
        throw Failure(error)
    }
}
