import Foundation

/// A real server that a test starts, stops and kills, with everything of it in a temporary folder.
struct WebDAVServer: Sendable {
    static let canRun = access("/usr/sbin/apache2", X_OK) == 0

    /// Without a slash at the end.
    let address: String
    let root: String
    /// What it serves.
    var data: String { root + "/data" }
    var provider: String { "webdav+" + address }

    static let user = "promisefs"
    static let password = "promisefs-secret"

    private static func script(_ verb: String, _ root: String) -> String {
        "'\(Machine.repository)/scripts/servers/apache-webdav' \(verb) '\(root)'"
    }

    /// `environment`: what the script that starts it is told.
    static func with(
        _ environment: [String: String] = [:], _ body: (WebDAVServer) async throws -> Void
    ) async throws {
        var template = Array((Machine.folder + "/dav-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw HarnessError("no temporary folder in \(Machine.folder)") }
        let root = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        do {
            let started = try await runShell(script("start", root), environment: environment)
            guard started.status == 0, let line = started.output.split(separator: "\n").first else {
                throw HarnessError("the server was not started: \(started.errorText)")
            }
            let address = line.dropFirst("WEBDAV_URL=".count).dropLast()
            try await body(WebDAVServer(address: String(address), root: root))
        } catch {
            _ = try? await runShell(stopping(root))
            throw error
        }
        _ = try await runShell(stopping(root))
    }

    private static func stopping(_ root: String) -> String {
        "read -r process _ < '\(root)/server.pid' && kill -CONT -- -$process || true; \(script("stop", root)); rm -rf '\(root)'"
    }

    /// For `MountedDomain`: `$C` is what the server serves, `$U` its address, `$D` its folder; `curl` knows the password.
    func options(_ arguments: [String] = []) -> MountedDomain.Options {
        var options = MountedDomain.Options()
        options.provider = provider
        options.cloud = data
        options.arguments = ["--poll-interval", "1s"] + arguments
        options.environment = [
            "U": address, "D": root, "PROMISEFS_USER": Self.user, "PROMISEFS_PASSWORD": Self.password,
            "L": "\(Self.user):\(Self.password)", "SERVER": "\(Machine.repository)/scripts/servers/apache-webdav",
        ]
        return options
    }

    /// The file that curl(1) would have made of a name in the mount.
    static let equality = "diff -r --no-dereference --exclude=.DAV --exclude=.promisefs \"$C\" \"$M\""
}
