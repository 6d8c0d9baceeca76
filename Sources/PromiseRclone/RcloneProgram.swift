import Glibc
import PromiseCore
package import PromiseProvider
import PromiseSystem

/// The program `rclone` of this machine, and what it says of its configuration. Blocking, for some tenths of a second.
package struct RcloneProgram: Sendable {
    /// Bytes of its path.
    package let path: [UInt8]
    private static let limit = Duration.seconds(30)

    /// Throws a sentence where it is not installed.
    package init() throws(ProviderError) {
        let folders = RcloneProgram.variable("PATH") ?? "/usr/local/bin:/usr/bin:/bin"
        let places = folders.split(separator: ":").map { "\($0)/rclone" }
        guard let place = places.first(where: { access($0, X_OK) == 0 }) else {
            throw ProviderError(
                .permanent, "rclone is not installed: install the package 'rclone' (https://rclone.org/install)")
        }
        path = Array(place.utf8)
    }

    package init(path: [UInt8]) { self.path = path }

    /// Those that its configuration has.
    package func remotes() throws(ProviderError) -> [String] {
        // What goes wrong is said on the standard error.
        let words = ["/bin/sh", "-c", "exec \"$0\" listremotes --ask-password=false 2>&1"].map { Array($0.utf8) } + [path]
        guard let answer = ChildProcess.exchange(words, limit: RcloneProgram.limit) else {
            throw ProviderError(.offline, "rclone does not say which remotes it has: it did not answer in time")
        }
        return try RcloneProgram.remotes(in: String(decoding: answer.output, as: UTF8.self), status: answer.status)
    }

    /// Pure.
    package static func remotes(in output: String, status: Int32) throws(ProviderError) -> [String] {
        let lines = output.split(separator: "\n")
        guard status == 0 else {
            if output.contains("RCLONE_CONFIG_PASS") || output.contains("decrypt configuration") {
                throw ProviderError(
                    .authenticate, "rclone's configuration is encrypted: set RCLONE_CONFIG_PASS or RCLONE_PASSWORD_COMMAND "
                        + "in the environment of the mount")
            }
            let words = lines.last.map { ": " + RcloneWords.sentence($0) } ?? ""
            throw ProviderError(.permanent, "rclone cannot read its configuration\(words)")
        }
        return lines.compactMap { line in
            line.hasSuffix(":") && !line.contains("NOTICE") ? String(line.dropLast()) : nil
        }
    }

    /// Throws a sentence when the configuration has no such remote.
    package func check(_ location: RcloneLocation) throws(ProviderError) {
        let variable = "RCLONE_CONFIG_\(location.remote.uppercased())_TYPE"
        if RcloneProgram.variable(variable) != nil { return }
        let known = try remotes()
        guard !known.contains(location.remote) else { return }
        throw ProviderError(
            .permanent, "rclone has no remote '\(location.remote)': \(RcloneLocation.sentence(known))")
    }

    private static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
}

/// What rclone says, for people.
package enum RcloneWords {
    private static let lengthMax = 300

    /// Without the date that lines of its log begin with, on one line and not long.
    package static func sentence(_ line: some StringProtocol) -> String {
        escapedForDisplay(Array(undated(line).utf8.prefix(lengthMax)))
    }

    /// A line that it writes of itself when it begins to serve.
    package static func isNotice(_ line: String) -> Bool { undated(line).hasPrefix("NOTICE: ") }

    private static func undated(_ line: some StringProtocol) -> String {
        let words = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        let isDated = words.count == 3 && words[0].split(separator: "/").count == 3 && words[1].split(separator: ":").count == 3
        return isDated ? String(words[2]) : String(line)
    }

    /// Where it says that one of its servers listens: the address.
    package static func address(in line: String) -> String? {
        guard let start = line.firstRange(of: "http://127.0.0.1:") else { return nil }
        let port = line[start.upperBound...].prefix { $0.isASCII && $0.isNumber }
        return port.isEmpty ? nil : "http://127.0.0.1:\(port)"
    }
}
