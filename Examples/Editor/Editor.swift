import Glibc
import PromiseKit
import PromiseWire

/// A small editor on PromiseFS. It has a container; in it it finds `test.txt` by a query, or makes it; its document has a
/// picture; what it had open last it finds again by a bookmark, whatever that is called now.
///
///     editor /mnt
///
/// Commands, one a line: `p` prints, `a TEXT` appends a line, `d N` deletes one, `w` saves, `q` saves and ends.
@main
enum Editor {
    private static let application = "com.example.editor"

    static func main() async {
        do {
            let arguments = CommandLine.arguments
            guard arguments.count == 2 else { return print("usage: editor MOUNT") }
            let mount = try Location.of(Array(arguments[1].utf8), in: try MountTable.current()).mount
            try await run(on: mount)
        } catch {
            print("editor: \(error)")
            exit(1)
        }
    }

    private static func run(on mount: MountEntry) async throws {
        let client = try PromiseClient(mount: mount)
        let store = KeyValueStore(client, application: application)
        let last = try await lastDocument(store, client)
        let path = if let last { last } else { try await testDocument(client, mount) }
        guard let place = Location.absolutePath(of: path, on: mount) else {
            throw PromiseError(.local, "the document is not shown in this mount", exitStatus: 1)
        }
        let document = Document(
            try Location.of(place, in: try MountTable.current()), client: client, contents: Text())
        try await document.open()
        print("editing \(escaped(await document.location.path))")
        try await obey(document)
        try await document.close()
        if await document.state.contains(.inConflict) {
            print("others have changed it, too: see 'promisefs conflicts'")
        }
        let now = await document.location.path
        try await client.saveThumbnail(picture, of: now)
        // Of use on this machine alone, so it has a key of this machine's.
        try await store.set(.string(try await client.bookmark(of: now, for: application)), for: key)
    }

    private static func obey(_ document: Document<Text>) async throws {
        while let line = readLine() {
            let rest = String(line.dropFirst(2))
            switch line.first {
            case "p": for line in await document.contents.lines { print(line) }
            case "a": try await document.edit { $0.lines.append(rest) }
            case "d":
                try await document.edit { text in
                    guard let number = Int(rest), text.lines.indices.contains(number - 1) else { return }
                    text.lines.remove(at: number - 1)
                }
            case "w": try await document.save()
            case "q": return
            default: print("p, a TEXT, d N, w or q")
            }
        }
    }

    // MARK: Which document

    private static var key: String {
        var name = utsname()
        uname(&name)
        let host = withUnsafeBytes(of: name.nodename) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        return "document." + host.prefix(50)
    }

    private static func lastDocument(_ store: KeyValueStore, _ client: PromiseClient) async throws -> [UInt8]? {
        guard case .string(let bookmark)? = try await store.value(for: key),
            let found = try? await client.resolve(bookmark: bookmark, for: application)
        else { return nil }
        return path(found.pathBytes)
    }

    private static func testDocument(_ client: PromiseClient, _ mount: MountEntry) async throws -> [UInt8] {
        let container = try await client.addContainer(for: application, name: "Editor")
        guard let folder = path(container.pathBytes) else {
            throw PromiseError(.local, "the container is not there: \(container.reason ?? "")", exitStatus: 1)
        }
        let query = MetadataQuery("kMDItemFSName == %@", [.text("test.txt")]).scope(folder)
        if let known = try await query.results(of: client).first { return path(known.pathBytes) ?? folder }
        let fresh = folder + Array("/Documents/test.txt".utf8)
        guard let place = Location.absolutePath(of: fresh, on: mount),
            let file = fopen(String(decoding: place, as: UTF8.self), "wx")
        else { throw PromiseError(.local, "test.txt cannot be made", exitStatus: 1) }
        fputs("A new document.\n", file)
        fclose(file)
        return fresh
    }

    private static func escaped(_ path: [UInt8]) -> String { String(decoding: path, as: UTF8.self) }

    private static func path(_ text: String?) -> [UInt8]? {
        text.flatMap { PercentCoding.decode($0[...]) }.map { Array($0.drop { $0 == 0x2F }) }
    }

    /// One grey pixel: an editor would draw the first page.
    private static let picture: [UInt8] = [
        0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48, 0x44, 0x52,
        0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00, 0x00, 0x3A, 0x7E, 0x9B,
        0x55, 0x00, 0x00, 0x00, 0x0A, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9C, 0x63, 0x68, 0x00, 0x00, 0x00,
        0x82, 0x00, 0x81, 0x77, 0xCD, 0x72, 0xB6, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4E, 0x44, 0xAE,
        0x42, 0x60, 0x82,
    ]
}

/// What is in it, by lines.
private struct Text: DocumentContents {
    var lines: [String] = []

    init() {}

    init(bytes: [UInt8]) {
        lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
            .map { String($0) }
        if lines.last == "" { lines.removeLast() }
    }

    func bytes() -> [UInt8] { Array(lines.map { $0 + "\n" }.joined().utf8) }
}
