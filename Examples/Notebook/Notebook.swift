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

    /// What a note is in memory.
    private struct Note: DocumentContents {
        var lines: [String] = []

        init() {}
        init(bytes: [UInt8]) { lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init) }
        func bytes() -> [UInt8] { Array(lines.map { $0 + "\n" }.joined().utf8) }
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

    /// Opens the note, adds a line and closes it, undisturbed by others who do the same: what is done inside a claim of the
    /// document's own purpose is one step for everybody else.
    private static func add(_ line: String, to path: String) async throws {
        let location = try Location.of(Array(path.utf8), in: try MountTable.current())
        let client = try PromiseClient(mount: location.mount)
        let note = Document(location, client: client, contents: Note())
        let coordinator = FileCoordinator(client, purpose: note.purpose)
        try await coordinator.coordinate([.writing(location.path)], timeout: .seconds(30)) { _ in
            try await note.open()
            try await note.edit { $0.lines.append(line) }
            try await note.close()
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
