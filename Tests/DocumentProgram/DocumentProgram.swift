import Glibc
import PromiseKit
import PromiseWire

/// Edits documents as an application does, and says what it has saved: for `scripts/workloads/document-editors.py`.
///
///     document-program NAME
///
/// Reads lines from standard input: `open IDENTITY PATH` begins to edit a document, `quit` saves and ends. Writes lines:
/// `saved TOKEN` once a token is on the disk, `closed IDENTITY` when the document is gone or does not open, `foreign IDENTITY`
/// when it shows another document's text.
@main
struct DocumentProgram {
    static func main() async {
        guard CommandLine.arguments.count == 2 else {
            print("usage: document-program NAME")
            exit(2)
        }
        let name = CommandLine.arguments[1]
        await withTaskGroup { group in
            for await line in lines() {
                let words = line.split(separator: " ", maxSplits: 2).map(String.init)
                if words.first == "quit" { break }
                guard words.count == 3 else { continue }
                group.addTask { await DocumentEditor(words[1], name).run(words[2]) }
            }
            group.cancelAll()
        }
    }

    /// Reading blocks, so it has a thread of its own.
    private static func lines() -> AsyncStream<String> {
        let (lines, continuation) = AsyncStream.makeStream(of: String.self)
        let body = Body {
            while let line = readLine() { continuation.yield(line) }
            continuation.finish()
        }
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { argument in
                Unmanaged<Body>.fromOpaque(argument!).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(body).toOpaque())
        return lines
    }

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }
}

/// At once, as the process may be killed at any moment.
func say(_ text: String, to descriptor: Int32 = STDOUT_FILENO) {
    let line = Array((text + "\n").utf8)
    _ = write(descriptor, line, line.count)
}

/// A text of lines: the first one says which document it is, each other one is somebody's token.
struct TokenText: DocumentContents {
    var lines: [String] = []

    init() {}
    init(bytes: [UInt8]) { lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init) }
    func bytes() -> [UInt8] { Array((lines.joined(separator: "\n") + "\n").utf8) }

    mutating func add(_ others: [String]) {
        let known = Set(lines)
        lines += others.filter { !known.contains($0) }
    }
}

/// One document, edited until it is gone.
struct DocumentEditor {
    private let identity: String
    private let name: String

    init(_ identity: String, _ name: String) { (self.identity, self.name) = (identity, name) }

    private static func pause(_ most: Int) async {
        try? await Task.sleep(for: .milliseconds(Int.random(in: 1...most)))
    }

    func run(_ path: String) async {
        do {
            let location = try Location.of(Array(path.utf8), in: try MountTable.current())
            let client = try PromiseClient(mount: location.mount)
            let document = Document(location, client: client, contents: TokenText(), autosaveDelay: .milliseconds(100))
            try await document.open()
            await edit(document)
            try? await document.close()
        } catch {
            say("\(name): \(identity) does not open: \(error)", to: STDERR_FILENO)
        }
        say("closed \(identity)")
    }

    /// What was edited and is not known to be on the disk is in `unsaved`, also when the document has read another text.
    private func edit(_ document: Document<TokenText>) async {
        var (unsaved, count): ([String], Int) = ([], 0)
        while !Task.isCancelled {
            await DocumentEditor.pause(40)
            let state = await document.state
            if state.contains(.closed) { return }
            if await document.contents.lines.first.map({ $0 != "document \(identity)" }) ?? false {
                let place = String(decoding: await document.location.absolutePath, as: UTF8.self)
                return say("foreign \(identity) \(await document.contents.lines.first ?? "") at \(place)")
            }
            if state.contains(.savingError), ((await document.lastError) as? PromiseError)?.exitStatus == 6 {
                try? await document.revert()
            }
            if state.contains(.inConflict), Int.random(in: 0..<4) == 0 { try? await merge(document) }
            count += 1
            let token = "\(identity)/\(name)/\(getpid())/\(count)"
            let added = unsaved + [token]
            if (try? await document.edit({ $0.add(added) })) != nil { unsaved.append(token) }
            if Bool.random() { try? await document.save() }
            await note(document, &unsaved)
        }
        try? await document.save()
        await note(document, &unsaved)
    }

    /// Without unsaved changes what is shown was written or read: it is on the disk.
    private func note(_ document: Document<TokenText>, _ unsaved: inout [String]) async {
        guard let shown = await document.savedLines else { return }
        for token in unsaved where shown.contains(token) { say("saved \(token)") }
        unsaved.removeAll { shown.contains($0) }
    }

    /// Takes what other versions have that the document has not, and lets them go as they were then.
    private func merge(_ document: Document<TokenText>) async throws {
        let (location, versions) = (await document.location, FileVersions(document.client, purpose: document.purpose))
        for version in try await versions.unresolved(of: location.path) {
            guard let path = location.absolutePath(of: version.path), let bytes = read(path) else { continue }
            let lines = TokenText(bytes: bytes).lines
            try await document.edit { $0.add(lines) }
            try await document.save()
            try await versions.remove(version, of: await document.location.path)
        }
    }

    private func read(_ path: [UInt8]) -> [UInt8]? {
        guard let file = fopen(String(decoding: path, as: UTF8.self), "r") else { return nil }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        while true {
            let byte = getc(file)
            guard byte != EOF else { return ferror(file) == 0 ? bytes : nil }
            bytes.append(UInt8(truncatingIfNeeded: byte))
        }
    }
}

extension Document<TokenText> {
    /// What is shown, when it is on the disk as well.
    var savedLines: Set<String>? {
        hasUnsavedChanges || state.contains(.closed) ? nil : Set(contents.lines)
    }
}
