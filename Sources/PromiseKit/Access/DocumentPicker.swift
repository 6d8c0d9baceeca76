import CAttributes
import Foundation
import Glibc

/// Lets a person pick documents. The picker is a process of its own, so that this one learns what
/// was picked and nothing more.
public struct DocumentPicker: Sendable {
    public enum Mode: String, Sendable { case open, `import`, move, export, create, save }

    /// Where the person sees it.
    public enum Place: Sendable {
        /// The terminal of this process.
        case terminal
        /// A page in the browser.
        case web
    }

    public struct Document: Sendable, Equatable {
        /// Absolute, on a mount, or in the view of a sandbox; of an import, in a temporary folder,
        /// which goes when this process ends.
        public var path: String
        /// To find it again, where `application` was said.
        public var bookmark: String?
        /// Where a reference to it is now.
        public var reference: String?
    }

    public var mode: Mode
    /// Uniform type identifiers and MIME types; empty: all.
    public var types: [String] = []
    public var allowsMultiple = false
    public var picksFolders = false
    /// Paths of what is moved or exported.
    public var sources: [String] = []
    public var suggestedName: String?
    /// The folder to begin in.
    public var start: String?
    public var application: String?
    public var place = Place.terminal

    public init(_ mode: Mode) { self.mode = mode }

    /// Empty when the person cancelled. `executable` nil: that of `PROMISEFS_EXECUTABLE` or the
    /// `PATH`.
    public func pick(executable: String? = nil) async throws(PromiseError) -> [Document] {
        if let view = SandboxPicker.ofThisProcess() { return try await view.pick(self) }
        let program =
            executable ?? ProcessInfo.processInfo.environment["PROMISEFS_EXECUTABLE"] ?? "promisefs"
        let arguments = arguments
        let (status, output) = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(returning: DocumentPicker.run([program] + arguments))
            }
        }
        guard status == 0 else {
            // A cancelled picker and a failed one differ in what is on stderr alone; nothing was
            // picked.
            if status == 1 { return [] }
            throw PromiseError(.local, "the picker ended with status \(status)", exitStatus: status)
        }
        guard let answer = try? JSONDecoder().decode(Answer.self, from: Data(output)) else {
            throw PromiseError(
                .brokenReply, "the picker did not say what was picked", exitStatus: 1)
        }
        return answer.picked.map {
            Document(path: $0.path, bookmark: $0.bookmark, reference: $0.reference)
        }
    }

    private struct Answer: Decodable {
        struct Picked: Decodable {
            var path: String
            var bookmark: String?
            var reference: String?
        }

        var picked: [Picked]
    }

    package var arguments: [String] {
        var words = ["pick", "--json", "--mode", mode.rawValue]
        for type in types { words += ["--type", type] }
        if allowsMultiple { words.append("--multiple") }
        if picksFolders { words.append("--folders") }
        if let suggestedName { words += ["--suggest", suggestedName] }
        if let start { words += ["--at", start] }
        if let application { words += ["--app", application] }
        if place == .web { words.append("--web") }
        if mode == .import { words += ["--while", "\(getpid())"] }
        return words + (sources.isEmpty ? [] : ["--"] + sources)
    }

    /// Blocks. The status, and what was printed.
    private static func run(_ words: [String]) -> (Int32, [UInt8]) {
        var ends: [CInt] = [0, 0]
        guard attributes_pipe(&ends) == 0 else { return (127, []) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        var pointers: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
        pointers.append(nil)
        defer { for pointer in pointers { free(pointer) } }
        var process = pid_t()
        let problem = posix_spawnp(&process, words[0], &actions, nil, &pointers, environ)
        close(ends[1])
        defer { close(ends[0]) }
        guard problem == 0 else { return (127, []) }
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(ends[0], &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { break }
            output += buffer[..<count]
        }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0 && errno == EINTR {}
        return (status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + status & 0x7F, output)
    }
}
