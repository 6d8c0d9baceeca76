import PromiseCore

/// What one check found.
struct Finding: Encodable, Sendable, Equatable {
    enum Level: String, Encodable, Sendable { case ok, warning, problem }

    var level: Level
    var subject: String
    var message: String
    /// For people.
    var remedy: String?
    /// What to type, where a command mends it.
    var command: String?

    static func ok(_ subject: String, _ message: String) -> Finding {
        Finding(level: .ok, subject: subject, message: message)
    }
    static func warning(_ subject: String, _ message: String, _ remedy: String?) -> Finding {
        Finding(level: .warning, subject: subject, message: message, remedy: remedy)
    }
    static func problem(_ subject: String, _ message: String, _ remedy: String?) -> Finding {
        Finding(level: .problem, subject: subject, message: message, remedy: remedy)
    }

    /// A command mends it; `more` is what else is to be said of it.
    static func warning(
        _ subject: String, _ message: String, run command: String, _ more: String = ""
    ) -> Finding {
        Finding(
            level: .warning, subject: subject, message: message, remedy: "'\(command)'\(more)",
            command: command)
    }
    static func problem(
        _ subject: String, _ message: String, run command: String, _ more: String = ""
    ) -> Finding {
        Finding(
            level: .problem, subject: subject, message: message, remedy: "'\(command)'\(more)",
            command: command)
    }
}

/// A path as a shell takes it for one word, whatever is in it.
func shellWord(_ path: [UInt8]) -> String {
    let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-+,:@%=".utf8)
    let isText =
        String(validating: path, as: UTF8.self) != nil
        && path.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    if !path.isEmpty, path.allSatisfy(plain.contains) {
        return String(decoding: path, as: UTF8.self)
    }
    guard isText else {
        // The form of bash, zsh and POSIX of 2024.
        let escaped = path.map { byte in
            plain.contains(byte)
                ? String(Unicode.Scalar(byte))
                : "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
        return "$'" + escaped.joined() + "'"
    }
    var result = "\""
    for scalar in String(decoding: path, as: UTF8.self).unicodeScalars {
        if "\"\\$`".unicodeScalars.contains(scalar) { result += "\\" }
        result.unicodeScalars.append(scalar)
    }
    return result + "\""
}
