import Glibc
import PromiseCore
import PromiseKeyValue
import PromiseSystem

/// `values/APPLICATION.json` in the state folder. Blocking; one thread at a time.
struct ValueFiles: Sendable {
    static let nameByteCountMax = 180
    static let byteCountMax = 64 << 20
    private static let suffix = ".json"

    let folder: [UInt8]

    func applications() -> [Key] {
        guard
            let open = try? Descriptor.open(
                folder, flags: O_RDONLY | O_DIRECTORY, label: "values.open"),
            let names = try? listFolder(open, label: "values.list")
        else { return [] }
        return names.compactMap { name in
            guard let text = String(validating: name.name, as: UTF8.self),
                text.hasSuffix(ValueFiles.suffix)
            else { return nil }
            return Key(String(text.dropLast(ValueFiles.suffix.count)))
        }
    }

    /// Nil when there is none. One that cannot be read is not taken for an empty one.
    func read(_ application: Key) throws(Failure) -> ValueStore? {
        let path = path(application)
        do throws(SystemError) {
            _ = try FileStatus.of(path, label: "values.status")
        } catch {
            if error.errno == ENOENT { return nil }
            throw Failure(error)
        }
        guard let bytes = readSmallFile(path, countMax: ValueFiles.byteCountMax) else {
            throw Failure(
                .inputOutput,
                "the values in '\(escapedForDisplay(path))' cannot be read: check the disk")
        }
        do throws(RecordTrouble) {
            return try ValueStore(JSONReader.read(bytes), of: application)
        } catch {
            let shown = escapedForDisplay(path)
            switch error {
            case .damaged:
                throw Failure(
                    .corrupted,
                    "the values in '\(shown)' are damaged: those of the provider take their place when it has any and answers; "
                        + "'promisefs verify --repair' keeps the file elsewhere and goes on without it"
                )
            case .newer(let schema):
                throw Failure(
                    .corrupted,
                    "'\(shown)' has schema \(schema), of a newer version of this program: install that"
                )
            }
        }
    }

    /// The old file or the new one is there after a power cut. Returns when it is on the disk.
    func write(_ store: ValueStore) throws(Failure) {
        let path = path(store.record.application)
        let draft = path + Array(".new".utf8)
        do throws(SystemError) {
            try makeFolders(folder, label: "values.folder")
            let file = try Descriptor.open(
                draft, flags: O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600, label: "values.create")
            try writeFully(file.number, store.json.encoded, at: 0, label: "values.write")
            try PromiseSystem.synchronize(file.number, dataOnly: false, label: "values.sync")
            try rename(draft, to: path, label: "values.rename")
            let names = try Descriptor.open(
                folder, flags: O_RDONLY | O_DIRECTORY, label: "values.names")
            try PromiseSystem.synchronize(names.number, dataOnly: false, label: "values.syncNames")
        } catch {
            throw Failure(error)
        }
    }

    func path(_ application: Key) -> [UInt8] {
        folder + Array("/\(application.text)\(ValueFiles.suffix)".utf8)
    }
}
