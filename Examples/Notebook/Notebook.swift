import Glibc
import PromiseKit
import PromiseWire

/// A small application on PromiseFS: adds a line to a note without losing anybody else's, and shows the notes of a folder.
///
///     notebook add /mnt/note.txt "buy milk"
///     notebook list /mnt
@main
enum Notebook {
    static func main() async {
        do {
            try await run(Array(CommandLine.arguments.dropFirst()))
        } catch {
            print("notebook: \(error)")
            exit(1)
        }
    }

    private static func run(_ arguments: [String]) async throws {
        if arguments.count == 3, arguments[0] == "add" {
            try await add(arguments[2], to: arguments[1])
        } else if arguments.count == 2, arguments[0] == "list" {
            try await list(arguments[1])
        } else {
            print("usage: notebook add NOTE LINE | list FOLDER")
        }
    }

    /// Reads the whole note and writes it back with one line more, as an editor does.
    private static func add(_ line: String, to note: String) async throws {
        let location = try Location.of(Array(note.utf8), in: try MountTable.current())
        let coordinator = FileCoordinator(try PromiseClient(mount: location.mount))
        try await coordinator.coordinate([.writing(location.path)], timeout: .seconds(30)) { _ in
            let text = read(note) + line + "\n"
            guard let file = fopen(note, "w") else { throw PromiseError(.local, "\(note) cannot be written", exitStatus: 1) }
            fputs(text, file)
            fclose(file)
        }
    }

    private static func read(_ note: String) -> String {
        guard let file = fopen(note, "r") else { return "" }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        while true {
            let byte = getc(file)
            guard byte != EOF else { return String(decoding: bytes, as: UTF8.self) }
            bytes.append(UInt8(truncatingIfNeeded: byte))
        }
    }

    /// Asks the index: notes that are not here are shown like those that are, and stay where they are.
    private static func list(_ folder: String) async throws {
        let location = try Location.of(Array(folder.utf8), in: try MountTable.current())
        let notes = MetadataQuery("kMDItemFSName LIKE[c] %@", [.text("*.txt")]).scope(location.path).sorted(by: "kMDItemFSName")
        for note in try await notes.results(of: try PromiseClient(mount: location.mount)) {
            print("\(note.path)  \(note.size) bytes  \(note.isUploaded ? "uploaded" : "not uploaded yet")")
        }
    }
}
