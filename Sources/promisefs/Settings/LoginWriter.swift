import Glibc
import PromiseCore
import PromiseSystem

/// Keeps the login of a domain: the password in the Secret Service where there is one, else in the credentials file, of which
/// all other entries and comments stay as they are. Blocking.
struct LoginWriter {
    var domain: String
    var user: String?
    var password: String
    var mayUseService = true

    /// Returns whether the password is in the Secret Service.
    func write() throws(CommandFailure) -> Bool {
        try SettingsTurn.take(writeInTurn)
    }

    /// As `write`, for who has the turn.
    func writeInTurn() throws(CommandFailure) -> Bool {
        guard let path = BaseFolders.credentials() else {
            throw CommandFailure("there is no home folder; set HOME or XDG_CONFIG_HOME")
        }
        let old = try SetupWriter.text(of: path)
        // What cannot be written is said before anything is kept.
        let inFile = try section(isInService: false)
        let isInService = mayUseService && SecretService.store(password, ofDomain: domain)
        let new = LoginWriter.replaced(
            old, domain, by: isInService ? try section(isInService: true) : inFile)
        try SetupWriter.replace(path, new)
        return isInService
    }

    /// Of the credentials file.
    func section(isInService: Bool) throws(CommandFailure) -> String {
        let values = [password, user ?? ""]
        guard values.allSatisfy({ $0 == $0.trimmed && !$0.contains(where: \.isNewline) }) else {
            throw CommandFailure(
                "a user or a password of several lines, or with spaces at its ends, cannot be kept in "
                    + "the credentials file")
        }
        let user = user.map { "user = \($0)\n" } ?? ""
        return "[\(domain)]\n\(user)"
            + (isInService ? "secret-service = true\n" : "password = \(password)\n")
    }

    /// The text with this section in the place of the one of the same name, else at its end.
    static func replaced(_ text: String, _ name: String, by section: String) -> String {
        var before: [Substring] = []
        var after: [Substring] = []
        var isInside = false
        var isFound = false
        // CR and LF together are one character.
        let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
        for line in lines {
            if line.trimmed.hasPrefix("[") { isInside = line.trimmed == "[\(name)]" }
            if isInside {
                isFound = true
                // What divides it from the next one, and what explains it, stays.
                if line.isEmpty || line.trimmed.hasPrefix("#") { after.append(line) }
            } else if isFound {
                after.append(line)
            } else {
                before.append(line)
            }
        }
        guard isFound else {
            return text + (text.isEmpty ? "" : text.hasSuffix("\n") ? "\n" : "\n\n") + section
        }
        return before.map { $0 + "\n" }.joined() + section + after.joined(separator: "\n")
    }
}
