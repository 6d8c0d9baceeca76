import ArgumentParser
import Glibc
import PromiseKit

/// Arguments as bytes. The argument parser wants text, and text made from bytes that are not UTF-8 would name other files.
///
/// A byte that does not belong to well-formed UTF-8 travels through the parser as one scalar of the private plane,
/// U+10FF80 to U+10FFFF; those scalars themselves travel as their escaped bytes, so that nothing is ambiguous.
enum RawArguments {
    private static let base: UInt32 = 0x10FF00

    static func ofProcess() -> [String] {
        var result: [String] = []
        for index in 0..<Int(CommandLine.argc) {
            guard let argument = CommandLine.unsafeArgv[index] else { continue }
            result.append(text(of: UnsafeBufferPointer(start: argument, count: strlen(argument)).map { UInt8(bitPattern: $0) }))
        }
        return result
    }

    static func text(of bytes: [UInt8]) -> String {
        if let text = String(validating: bytes, as: UTF8.self), !text.unicodeScalars.contains(where: isEscape) { return text }
        var scalars = String.UnicodeScalarView()
        var rest = bytes[...]
        while let first = rest.first {
            let length = (1...4).first { count in
                guard count <= rest.count, let text = String(validating: rest.prefix(count), as: UTF8.self) else { return false }
                return text.unicodeScalars.count == 1 && !text.unicodeScalars.contains(where: isEscape)
            }
            if let length {
                // Checked just now, so decoding repairs nothing.
                scalars.append(contentsOf: String(decoding: rest.prefix(length), as: UTF8.self).unicodeScalars)
            } else {
                guard let escape = Unicode.Scalar(base + UInt32(first)) else {
                    preconditionFailure("a private scalar is a scalar")
                }
                scalars.append(escape)
            }
            rest = rest.dropFirst(length ?? 1)
        }
        return String(scalars)
    }

    static func bytes(of text: String) -> [UInt8] {
        var result: [UInt8] = []
        for scalar in text.unicodeScalars {
            if isEscape(scalar) {
                result.append(UInt8(truncatingIfNeeded: scalar.value))
            } else {
                result += Array(UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            }
        }
        return result
    }

    /// Refuses what was no UTF-8 as something that is to have a name in text.
    static func checkIsText(_ text: String, _ what: String) throws(ValidationError) {
        if text.unicodeScalars.contains(where: isEscape) { throw ValidationError("\(what) is not UTF-8") }
    }

    private static func isEscape(_ scalar: Unicode.Scalar) -> Bool { scalar.value >= base + 0x80 && scalar.value <= base + 0xFF }
}

/// A path given on the command line.
struct PathArgument: ExpressibleByArgument, Sendable, Equatable {
    var bytes: [UInt8]

    init(bytes: [UInt8]) { self.bytes = bytes }

    init?(argument: String) {
        guard !argument.isEmpty else { return nil }
        bytes = RawArguments.bytes(of: argument)
    }

    static var defaultCompletionKind: CompletionKind { .file() }
}

/// What a server over TLS is known by: the path of a PEM file, or `sha256:…`.
struct CertificateArgument: ExpressibleByArgument, Sendable, Equatable {
    static let help = ArgumentHelp(
        "What the server is known by: a PEM file with the authority's certificate or the server's own, or sha256:… of it. "
            + "(default: the system's authorities)", valueName: "file|sha256:hex")

    /// With an absolute path: the daemon has another folder.
    var text: String

    init?(argument: String) {
        guard !argument.isEmpty else { return nil }
        text = argument
        guard !argument.lowercased().hasPrefix("sha256:"), let path = try? absolutePath(RawArguments.bytes(of: argument)) else {
            return
        }
        text = RawArguments.text(of: path)
    }

    static var defaultCompletionKind: CompletionKind { .file() }
}
