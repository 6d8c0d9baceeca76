import Foundation

/// A real S3 server that a test starts, stops and kills, with everything of it in a temporary folder. moto where Python has it
/// or can get it, else Ceph.
struct S3Server: Sendable {
    enum Kind: String, Sendable, CaseIterable {
        case moto = "moto-s3"
        case ceph = "ceph-rgw"

        var script: String { "\(Machine.repository)/scripts/servers/\(rawValue)" }
    }

    static let hasCeph = access("/usr/bin/radosgw", X_OK) == 0 && access("/usr/bin/ceph-osd", X_OK) == 0

    let kind: Kind
    let endpoint: String
    let root: String
    var provider: String { "s3://promisefs/cloud?endpoint=\(endpoint)" }

    static let key = "promisefs-access"
    static let secret = "promisefs-secret-key"

    /// `kind`: which is tried first; the tests are the same on every server.
    static func with(_ kind: Kind? = nil, _ body: (S3Server) async throws -> Void) async throws {
        var template = Array((Machine.folder + "/s3-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw HarnessError("no temporary folder in \(Machine.folder)") }
        let root = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        do {
            try await body(try await start(kind, root))
        } catch {
            await stop(root)
            throw error
        }
        await stop(root)
    }

    private static func start(_ wanted: Kind?, _ root: String) async throws -> S3Server {
        var reasons: [String] = []
        for kind in (wanted.map { [$0] } ?? []) + Kind.allCases.filter({ $0 != wanted }) {
            let started = try await runShell("'\(kind.script)' start '\(root)'", seconds: 180)
            let line = started.output.split(separator: "\n").first { $0.hasPrefix("S3_ENDPOINT=") }
            if started.status == 0, let line {
                return S3Server(kind: kind, endpoint: String(line.dropFirst("S3_ENDPOINT=".count)), root: root)
            }
            reasons.append(started.errorText.split(separator: "\n").last.map(String.init) ?? "\(kind.rawValue) does not start")
        }
        throw HarnessError("there is no S3 server to test with: \(reasons.joined(separator: "; "))")
    }

    private static func stop(_ root: String) async {
        let scripts = Kind.allCases.map { "'\($0.script)' stop '\(root)' || true" }.joined(separator: "; ")
        _ = try? await runShell("\(scripts); rm -rf '\(root)'", seconds: 120)
    }

    /// For `MountedDomain`: `s3 METHOD KEY [CURL OPTIONS]` is another client, `$D` is the server's folder. `$C` is a folder of
    /// this machine, for models.
    func options(_ arguments: [String] = []) -> MountedDomain.Options {
        var options = MountedDomain.Options()
        options.provider = provider
        options.arguments = ["--poll-interval", "1s"] + arguments
        options.environment = [
            "D": root, "E": "\(endpoint)/promisefs", "SERVER": kind.script, "AWS_ACCESS_KEY_ID": Self.key,
            "AWS_SECRET_ACCESS_KEY": Self.secret, "BASH_ENV": "\(Machine.workloads)/s3-client",
        ]
        return options
    }

    /// What is in the mount is what another client gets, name by name.
    static let equality = "python3 \"$W/compare-s3.py\" \"$E\" cloud/ \"$M\""
}
