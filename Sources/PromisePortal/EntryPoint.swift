import CSystemBus
import Glibc

/// `promisefs-portal [WORD…]`: shows pickers for programs that ask the desktop for files. What
/// follows is given to each `promisefs pick`; nothing: `--web`. `--ask`: see `DialogCall`.
@main
enum EntryPoint {
    static func main() {
        signal(SIGPIPE, SIG_IGN)
        // Names are bytes, which `CommandLine.arguments` would repair.
        let words = (1..<max(1, Int(CommandLine.argc))).compactMap { CommandLine.unsafeArgv[$0] }
            .map { word in
                UnsafeBufferPointer(start: word, count: strlen(word)).map { UInt8(bitPattern: $0) }
            }
        let place = words.isEmpty ? [Array("--web".utf8)] : words
        do throws(BusError) {
            if words.first == Array("--ask".utf8) {
                guard let dialog = DialogCall(Array(words.dropFirst())) else { exit(9) }
                // Whoever asked may die: then nobody waits for an answer.
                _ = promise_end_with_parent()
                exit(try dialog.run())
            }
            let portal = try Portal(command: [program, Array("pick".utf8)] + place)
            try portal.serve()
        } catch {
            let reason = String(cString: strerror(error.number))
            let text = Array("promisefs-portal: \(error.call): \(reason)\n".utf8)
            _ = text.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
            exit(9)
        }
    }

    /// `promisefs`: what was installed with this program, what was built with it, or that of the
    /// path.
    private static var program: [UInt8] {
        if let named = getenv("PROMISEFS_EXECUTABLE") { return Array(String(cString: named).utf8) }
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        guard count > 0 else { return Array("promisefs".utf8) }
        let parts = buffer[..<count].map { UInt8(bitPattern: $0) }.split(separator: 0x2F)
        func path(_ dropped: Int, _ rest: String) -> String {
            let folder = parts.dropLast(dropped).map { "/" + String(decoding: $0, as: UTF8.self) }
            return folder.joined() + rest
        }
        // PREFIX/libexec/promisefs/promisefs-portal
        let candidates = [path(3, "/bin/promisefs"), path(1, "/promisefs")]
        let found = candidates.first { access($0, X_OK) == 0 }
        return Array((found ?? "promisefs").utf8)
    }
}
