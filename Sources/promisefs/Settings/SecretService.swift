import Glibc
import PromiseCore
import PromiseDomain
import PromiseSystem

/// Passwords that the desktop keeps (org.freedesktop.secrets: GNOME's keyring, KDE's wallet, KeePassXC), by secret-tool(1) of
/// libsecret. The credentials file says of an entry that it is there, by `secret-service = true`.
enum SecretService {
    /// Somebody may have to type the password of the keyring.
    private static let patience = Duration.seconds(60)
    private static let program = "secret-tool"

    private static func words(_ verb: [String], _ domain: String) -> [[UInt8]] {
        ([program] + verb + ["application", "promisefs", "domain", domain]).map { Array($0.utf8) }
    }

    /// A program to ask, and a bus to ask on. Whether anybody answers there shows when it is asked.
    static var isAvailable: Bool { SystemMounts.program(program) != nil && hasBus }

    private static var hasBus: Bool {
        if environment("DBUS_SESSION_BUS_ADDRESS") != nil { return true }
        guard let runtime = environment("XDG_RUNTIME_DIR") else { return false }
        return SystemMounts.isAccessible(Array("\(runtime)/bus".utf8), F_OK)
    }

    /// The login of a domain whose password is kept there; nil when it is not. Throws a sentence when it cannot be had, with the
    /// status of what is tried again later: a keyring may be locked when a unit begins.
    static func login(ofDomain domain: String) async throws(CommandFailure) -> Login? {
        try await Blocking.run { () throws(CommandFailure) in
            guard let file = BaseFolders.credentials(),
                let entry = CredentialsLook.entries(file).first(where: { $0.name == domain }),
                entry.isInSecretService
            else { return nil }
            guard let password = lookup(domain) else {
                throw CommandFailure(
                    "the password of '\(domain)' is in the Secret Service, which does not give it: "
                        + "unlock the keyring, or say 'promisefs login \(domain)'",
                    exitStatus: ExitStatus.offline)
            }
            return Login(user: entry.user, password: password)
        }
    }

    /// What was given, with the password that is kept there where none was: for who speaks with a
    /// domain's provider without a daemon. Throws as `login` does when there is nothing else.
    static func completed(
        _ given: Login?, ofDomain domain: String
    ) async throws(CommandFailure) -> Login? {
        if given?.hasPassword == true { return given }
        do throws(CommandFailure) {
            guard let kept = try await login(ofDomain: domain) else { return given }
            return given?.with(passwordOf: kept) ?? kept
        } catch {
            guard let given else { throw error }
            return given
        }
    }

    /// Asks again, for a domain that is mounted without.
    static func keptLogin(ofDomain domain: String) -> DomainConfiguration.KeptLogin {
        { () async throws(Domain.StartFailure) in
            do throws(CommandFailure) {
                return try await login(ofDomain: domain)
            } catch {
                throw Domain.StartFailure(error.message ?? "", exitStatus: error.exitStatus)
            }
        }
    }

    /// Blocking.
    static func lookup(_ domain: String) -> String? {
        guard isAvailable,
            let answer = ChildProcess.exchange(words(["lookup"], domain), limit: patience),
            answer.status == 0,
            let text = String(validating: answer.output, as: UTF8.self)
        else { return nil }
        let line = text.hasSuffix("\n") ? String(text.dropLast()) : text
        return line.isEmpty ? nil : line
    }

    /// False when there is no such service, or it refuses. Blocking.
    static func store(_ password: String, ofDomain domain: String) -> Bool {
        guard isAvailable else { return false }
        let verb = ["store", "--label=PromiseFS: \(domain)"]
        let answer = ChildProcess.exchange(
            words(verb, domain), input: Array(password.utf8), limit: patience)
        // What says yes and forgets is no help.
        return answer?.status == 0 && lookup(domain) == password
    }

    /// Blocking.
    static func remove(_ domain: String) {
        if isAvailable { _ = ChildProcess.exchange(words(["clear"], domain), limit: patience) }
    }

    /// For `doctor`, of the entries of the credentials file. Blocking.
    static func findings(_ file: [UInt8]) -> [Finding] {
        let names = CredentialsLook.entries(file).filter(\.isInSecretService).map(\.name).sorted()
        guard let first = names.first else { return [] }
        guard SystemMounts.program(program) != nil else {
            return [
                .problem(
                    "Secret Service",
                    "keeps the password of '\(first)', and secret-tool, which asks it, is missing",
                    run: "apt install libsecret-tools", " as root")
            ]
        }
        guard hasBus else {
            return [
                .problem(
                    "Secret Service",
                    "keeps the password of '\(first)', and there is no session bus to ask it on",
                    "log in by a session that has one, or say 'promisefs login --no-secret-service \(first)'"
                )
            ]
        }
        return []
    }
}
