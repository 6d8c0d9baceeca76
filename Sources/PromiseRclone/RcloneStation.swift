import FoundationEssentials
import PromiseExtension
import PromiseProvider
import PromiseSystem
import PromiseWebDAV
import Synchronization

/// The address and the password of the rclone that is running. Both are others each time it is started, so that who takes a
/// port that became free learns a password that opens nothing.
final class RcloneStation: Sendable {
    struct Address: Sendable, Equatable {
        var files: String
        /// Of its remote control.
        var control: String
        var authorization: String
    }

    private struct State: Sendable {
        var authorization = ""
        var files: String?
        var control: String?
        var trouble: String?
    }

    private let state = Mutex(State())
    static let user = "promisefs"
    /// What would have rclone listen, answer, write or log otherwise than it is told here. The rest is the user's own.
    static let strangers = [
        "VFS_", "RC_", "USER", "PASS", "HTPASSWD", "REALM", "BASEURL", "AUTH_PROXY", "CERT", "KEY", "CLIENT_CA", "ADDR",
        "LOG_", "USE_JSON_LOG", "SYSLOG", "QUIET", "VERBOSE", "DRY_RUN", "INTERACTIVE", "READ_ONLY", "IMMUTABLE", "ETAG_HASH",
        "DIR_CACHE_TIME", "POLL_INTERVAL", "NO_MODTIME", "TEMPLATE", "ALLOW_ORIGIN", "BACKUP_DIR",
    ]

    var address: Address? {
        state.withLock { state in
            guard let files = state.files, let control = state.control else { return nil }
            return Address(files: files, control: control, authorization: state.authorization)
        }
    }

    /// The last thing that went wrong, as it said it.
    var trouble: String? { state.withLock { $0.trouble } }

    /// For a new start.
    func renew(_ words: [[UInt8]]) -> [[UInt8]] {
        var random = SystemRandomNumberGenerator()
        let secret = (0..<3).map { _ in String(random.next() as UInt64, radix: 36) }.joined()
        let login = "\(RcloneStation.user):\(secret)"
        state.withLock { $0 = State(authorization: "Basic \(Data(login.utf8).base64EncodedString())") }
        let prefixes = RcloneStation.strangers.map { Array("RCLONE_\($0)".utf8) }
        let kept = words.filter { word in
            !prefixes.contains { prefix in word.starts(with: prefix) && !word.starts(with: Array("RCLONE_PASSWORD_".utf8)) }
        }
        let own = ["RCLONE_USER", "RCLONE_RC_USER"].map { "\($0)=\(RcloneStation.user)" }
            + ["RCLONE_PASS", "RCLONE_RC_PASS"].map { "\($0)=\(secret)" }
        return kept + own.map { Array($0.utf8) }
    }

    func hear(_ line: [UInt8]) {
        let text = String(decoding: line, as: UTF8.self)
        state.withLock { state in
            // Only the first that it says of itself: errors have the remote's words in them, who would
            // have the password and what is written sent to a place of its own.
            if RcloneWords.isNotice(text), let address = RcloneWords.address(in: text) {
                if text.contains("remote control") { state.control = state.control ?? address }
                if text.contains("WebDav Server started") { state.files = state.files ?? address }
            } else if text.contains("ERROR") || text.contains("Failed") || text.contains("CRITICAL") {
                state.trouble = RcloneWords.sentence(text)
            }
        }
    }
}
