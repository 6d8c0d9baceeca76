import Foundation
import PromiseKit
import Synchronization
import Testing

/// A document of one text: a file, or the file `a` of a package.
private protocol TranscriptContents: DocumentContents {
    static var isFolder: Bool { get }
    var text: String { get set }
    init()
}

/// As where there is no room.
private let isUnsavable = Mutex(false)

private func checkSavable() throws {
    if isUnsavable.withLock({ $0 }) { throw CancellationError() }
}

private struct Note: TranscriptContents {
    static let isFolder = false
    var text = ""

    init() {}
    init(bytes: [UInt8]) throws { text = String(decoding: bytes, as: UTF8.self) }
    func bytes() throws -> [UInt8] {
        try checkSavable()
        return Array(text.utf8)
    }
}

private struct Album: TranscriptContents, PackageContents {
    static let isFolder = true
    var files = FilePackage(["a": "", "deep/b": "beside\n"])
    var text: String {
        get { String(decoding: files["a"] ?? [], as: UTF8.self) }
        set { files["a"] = Array(newValue.utf8) }
    }

    init() {}
    init(package: FilePackage) throws { files = package }
    func package() throws -> FilePackage {
        try checkSavable()
        return files
    }
}

extension FilePackage {
    fileprivate init(_ texts: [String: String]) {
        self.init()
        for (name, text) in texts { self[name] = Array(text.utf8) }
    }
}

/// What happens to a document, and the states that it shows for that, one line each.
private final class Transcript<Contents: TranscriptContents>: Sendable {
    let document: Document<Contents>
    private let lines = Mutex<[String]>([])
    private let seen = Mutex<[String]>([])
    private let last = Mutex("closed")

    init(_ document: Document<Contents>) {
        self.document = document
        Task { [weak self] in
            for await state in document.stateChanges { self?.seen.withLock { $0.append(Self.name(state)) } }
        }
    }

    private static func name(_ state: Document<Contents>.State) -> String {
        let names: [(Document<Contents>.State, String)] = [
            (.closed, "closed"), (.inConflict, "conflict"), (.savingError, "error"), (.editingDisabled, "locked"),
        ]
        let found = names.filter { state.contains($0.0) }.map(\.1)
        return found.isEmpty ? "normal" : found.joined(separator: "+")
    }

    /// Until the document is at rest in `end`.
    func step(_ what: String, to end: String, _ body: () async throws -> Void) async throws {
        seen.withLock { $0 = [] }
        try await body()
        var restCount = 0
        for _ in 0..<1500 where restCount < 5 {
            try await Task.sleep(for: .milliseconds(20))
            restCount = Self.name(await document.state) == end ? restCount + 1 : 0
        }
        let now = Self.name(await document.state)
        var states = [last.withLock { $0 }]
        for state in seen.withLock({ $0 }) + [now] {
            // It is locked for moments, too, in which it reads: how often depends on who is told first.
            let name = end == "locked" ? state : state.replacing("+locked", with: "").replacing("locked", with: "normal")
            if name != states.last { states.append(name) }
        }
        last.withLock { $0 = now }
        let line = "\(what): \(states.count > 1 ? states.dropFirst().joined(separator: ", ") : now)"
        lines.withLock { $0.append(line) }
    }

    var text: String { lines.withLock { $0 }.joined(separator: "\n") }
}

extension MountSuites {
    /// Every state of PromiseKit's `Document` and what leads there, as a transcript, of a file and of a package.
    @Suite struct DocumentTranscriptTests {
        private static let expected = """
            created: normal
            edited: normal
            saved: normal
            a save fails: error
            saved again: normal
            others read what was edited: normal
            somebody writes: locked
            it is written: normal
            others write without a claim: normal
            others write while there are edits: error
            reverted: normal
            others write while there are edits: error
            overwritten: normal
            changed at the provider: normal
            moved: normal
            edited on both sides: conflict
            resolved: normal
            closed: closed
            opened: normal
            deleted: closed
            """

        @Test(.timeLimit(.minutes(3))) func everyStateAndEventOfAFile() async throws { try await play(Note.self) }

        @Test(.timeLimit(.minutes(3))) func everyStateAndEventOfAPackage() async throws { try await play(Album.self) }

        private func play<Contents: TranscriptContents>(_ type: Contents.Type) async throws {
            let options = MountedDomain.Options(arguments: ["--poll-interval", "1s"])
            try await MountedDomain.with(options) { domain in
                let client = PromiseClient(
                    socketPath: domain.root + "/run/promisefs/\(domain.domainName).sock", domain: domain.domainName)
                let location = try Location.of(Array((domain.mount + "/doc").utf8), in: MountTable.current())
                let document = Document(location, client: client, contents: Contents(), autosaveDelay: .seconds(3600))
                let transcript = Transcript(document)
                try await edits(transcript, domain)
                try await others(transcript, domain)
                try await conflicts(transcript, domain)
                try await ends(transcript, domain)
                let text = transcript.text
                #expect(text == Self.expected, "\(text)")
            }
        }

        /// The file whose bytes are the text.
        private static func place<Contents: TranscriptContents>(_ transcript: Transcript<Contents>) async -> String {
            let path = String(decoding: await transcript.document.location.path, as: UTF8.self)
            return Contents.isFolder ? path + "/a" : path
        }

        private func edits<Contents: TranscriptContents>(
            _ transcript: Transcript<Contents>, _ domain: MountedDomain
        ) async throws {
            let document = transcript.document
            try await transcript.step("created", to: "normal") { try await document.save(.creating) }
            try await transcript.step("edited", to: "normal") { try await document.edit { $0.text = "one\n" } }
            try await transcript.step("saved", to: "normal") { try await document.save() }
            try await transcript.step("a save fails", to: "error") {
                try await document.edit { $0.text = "two\n" }
                isUnsavable.withLock { $0 = true }
                await #expect(throws: CancellationError.self) { try await document.save() }
            }
            try await transcript.step("saved again", to: "normal") {
                isUnsavable.withLock { $0 = false }
                try await document.save()
            }
            try await transcript.step("others read what was edited", to: "normal") {
                try await document.edit { $0.text = "three\n" }
                let path = await Self.place(transcript)
                try await domain.shell("[ \"$(\"$P\" coordinate read \"$M/doc\" -- cat \"$M/\(path)\")\" = three ]")
                #expect(await !document.hasUnsavedChanges)
            }
        }

        private func others<Contents: TranscriptContents>(
            _ transcript: Transcript<Contents>, _ domain: MountedDomain
        ) async throws {
            let document = transcript.document
            let path = await Self.place(transcript)
            func shows(_ text: String) async throws {
                for _ in 0..<1500 {
                    if await document.contents.text == text { return }
                    try await Task.sleep(for: .milliseconds(20))
                }
                Issue.record("it does not show \(text)")
            }
            try await transcript.step("somebody writes", to: "locked") {
                let wait = "echo four > \"$1\"; touch \"$T/held\"; until [ -e \"$T/go\" ]; do sleep 0.05; done"
                try await domain.shell(
                    """
                    "$P" coordinate write "$M/doc" -- sh -c '\(wait)' sh "$M/\(path)" > /dev/null 2>&1 &
                    within 10 '[ -e "$T/held" ]'
                    """)
                await #expect(throws: PromiseError.self) { try await document.edit { $0.text = "not now\n" } }
            }
            try await transcript.step("it is written", to: "normal") {
                try await domain.shell("touch \"$T/go\"")
                try await shows("four\n")
            }
            try await transcript.step("others write without a claim", to: "normal") {
                try await domain.shell("echo five > \"$M/\(path)\"")
                try await shows("five\n")
            }
            for answer in ["reverted", "overwritten"] {
                try await transcript.step("others write while there are edits", to: "error") {
                    try await document.edit { $0.text = "mine\n" }
                    try await domain.shell("echo theirs > \"$M/\(path)\"")
                }
                try await transcript.step(answer, to: "normal") {
                    if answer == "reverted" {
                        try await document.revert()
                    } else {
                        try await document.save(.overwritingChangesOfOthers)
                    }
                }
                #expect(await document.contents.text == (answer == "reverted" ? "theirs\n" : "mine\n"))
            }
            try await transcript.step("changed at the provider", to: "normal") {
                try await domain.shell(
                    """
                    "$P" sync --wait "$M"; [ "$(cat "$C/\(path)")" = mine ]; echo remote > "$C/\(path)"
                    """)
                try await shows("remote\n")
            }
            try await transcript.step("moved", to: "normal") {
                try await domain.shell("mkdir \"$M/folder\"; mv \"$M/doc\" \"$M/folder/moved\"")
                for _ in 0..<1500 where await document.location.path != Array("folder/moved".utf8) {
                    try await Task.sleep(for: .milliseconds(20))
                }
            }
        }

        private func conflicts<Contents: TranscriptContents>(
            _ transcript: Transcript<Contents>, _ domain: MountedDomain
        ) async throws {
            let document = transcript.document
            let path = await Self.place(transcript)
            try await domain.synchronize()
            try await transcript.step("edited on both sides", to: "conflict") {
                try domain.setFaults(["offline=true"])
                try await document.edit { $0.text = "here\n" }
                try await document.save()
                try await domain.shell("echo there > \"$C/\(path)\"")
                try domain.setFaults([])
            }
            try await transcript.step("resolved", to: "normal") {
                try await domain.shell("\"$P\" resolve \"$M/\(path)\" --keep current")
            }
        }

        private func ends<Contents: TranscriptContents>(
            _ transcript: Transcript<Contents>, _ domain: MountedDomain
        ) async throws {
            let document = transcript.document
            try await transcript.step("closed", to: "closed") { try await document.close() }
            try await transcript.step("opened", to: "normal") { try await document.open() }
            try await transcript.step("deleted", to: "closed") {
                try await domain.shell(
                    "\"$P\" coordinate write \"$M/folder/moved\" --option forDeleting -- rm -r \"$M/folder/moved\"")
            }
        }
    }
}
