import Glibc
import PromiseCore
import PromiseDomain
import PromiseKit
import PromiseSystem
import PromiseWire

/// A PROVIDER as given on the command line, resolved: `folder:/srv/documents`.
struct ProviderName: Sendable, Equatable {
    static let schemes: [(name: String, form: String, description: String)] = [
        ("folder", "folder:/PATH", "a folder of this machine, which other programs and machines may change too"),
        (
            "webdav+https", "webdav+https://[USER@]HOST/PATH",
            "a folder on a WebDAV server; passwords are in the credentials file, never in the name"
        ),
        ("webdav+http", "webdav+http://[USER@]HOST/PATH", "the same without TLS, for this machine or a network you trust"),
        (
            "s3", "s3://BUCKET/PREFIX?endpoint=URL&region=REGION",
            "a bucket of AWS or another S3 server; access keys are in the environment or a file, never in the name"
        ),
        (
            "rclone", "rclone:REMOTE:PATH",
            "one of your rclone remotes, encrypted ones too; 'rclone config' makes them, 'rclone listremotes' lists them"
        ),
        (
            "extension+exec", "extension+exec:/PATH/TO/PROGRAM[?ARGUMENT&ARGUMENT…]",
            "somebody's own store: the program is started and speaks HTTP on a Unix socket"
        ),
        ("extension", "extension:/PATH/TO/SOCKET", "the same for a process that somebody else starts"),
    ]

    /// With an absolute path, as the domain is told.
    var text: String
    /// The folder of this machine that it speaks for; nil: it speaks for something elsewhere.
    var folder: [UInt8]?
    /// The folder did not answer when it was looked at.
    var isSilent = false
    /// What a domain is called after.
    private var component: [UInt8]

    /// Blocking: resolves links, unless that has been done. Nothing is made.
    init(parsing argument: String, isResolved: Bool = false) throws(CommandFailure) {
        let known = ProviderName.schemes.map(\.form).joined(separator: ", ")
        guard let colon = argument.firstIndex(of: ":"), !argument[..<colon].contains("/") else {
            let hint = "write folder:\(escapedForDisplay(RawArguments.bytes(of: argument))) for a folder"
            throw CommandFailure("the provider has no scheme; \(hint)", exitStatus: ExitStatus.usage)
        }
        let scheme = argument[..<colon]
        guard ProviderName.schemes.contains(where: { $0.name == scheme }) else {
            throw CommandFailure("there is no provider '\(scheme)'; known are: \(known)", exitStatus: ExitStatus.usage)
        }
        guard scheme == "folder" else {
            let remote: RemoteProviderName
            do throws(Domain.StartFailure) {
                remote = try RemoteProviderName(argument)
            } catch {
                throw CommandFailure(error.message, exitStatus: error.exitStatus)
            }
            self.init(text: remote.text, folder: nil, component: Array(remote.component.utf8))
            return
        }
        let path = RawArguments.bytes(of: String(argument[argument.index(after: colon)...]))
        guard !path.isEmpty else {
            throw CommandFailure("the provider names no folder; write \(known)", exitStatus: ExitStatus.usage)
        }
        try self.init(folder: path, isResolved: isResolved)
    }

    /// The folder provider of a path. One on a disk that hangs keeps the name that it was given.
    init(folder path: [UInt8], isResolved: Bool = false) throws(CommandFailure) {
        let absolute: [UInt8]
        do throws(PromiseError) { absolute = simplified(try absolutePath(path)) } catch { throw CommandFailure(error) }
        var folder = absolute
        var isSilent = false
        if !isResolved {
            switch lookAtFolder(absolute, flags: openPathOnly) {
            case .found(let resolved): folder = resolved
            case .silent: isSilent = true
            case .failed: break
            }
        }
        guard let text = String(validating: folder, as: UTF8.self) else {
            throw CommandFailure(
                "the path of the provider's folder is not UTF-8: \(escapedForDisplay(folder)); mount it under another name",
                exitStatus: ExitStatus.usage)
        }
        let last = Array(folder.split(separator: UInt8(ascii: "/")).last ?? [])
        self.init(text: "folder:" + text, folder: folder, component: last)
        self.isSilent = isSilent
    }

    private init(text: String, folder: [UInt8]?, component: [UInt8]) {
        self.text = text
        self.folder = folder
        self.component = component
    }

    /// A name for the domain that stays the same: the last component, and six digits of a hash of the whole.
    var derivedDomain: String {
        var name = component.map { DomainName.isAllowed($0) ? $0 : UInt8(ascii: "_") }
            .drop { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "-") }
        if name.isEmpty { name = Array("folder".utf8)[...] }
        let digest = String(stableHash(Array(text.utf8)) & 0xFFFFFF, radix: 16)
        let digits = String(repeating: "0", count: 6 - digest.count) + digest
        return String(decoding: name.prefix(DomainName.byteCountMax - 7), as: UTF8.self) + "-" + digits
    }
}

/// FNV-1a with 64 bits, folded to 32: the same in every process, unlike `Hasher`.
private func stableHash(_ bytes: [UInt8]) -> UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return (hash >> 32) ^ (hash & 0xFFFF_FFFF)
}
