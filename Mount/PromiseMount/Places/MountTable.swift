import Glibc
package import PromiseCore
import PromiseSystem

/// What is mounted where, as this process sees it: /proc/self/mountinfo, proc(5).
package enum MountTable {
    package struct Entry: Sendable, Equatable {
        package var mountPoint: [UInt8]
        /// The mount's number, and its device's two.
        package var identifier: UInt32
        package var major: UInt32
        package var minor: UInt32
        /// E.g. `fuse.promisefs`.
        package var type: String
        /// For a domain's mount: the domain's name.
        package var source: String
    }

    /// Of the domain's mount at this path; nil: it is gone.
    package static func device(of mountPoint: [UInt8]) -> (major: UInt32, minor: UInt32)? {
        let entry = try? entries().last { $0.mountPoint == mountPoint && $0.type == "fuse.promisefs" }
        return entry.map { ($0.major, $0.minor) }
    }

    /// Throws what reading the table throws. `process`: as that one sees it.
    package static func entries(seenBy process: Int32? = nil) throws(Failure) -> [Entry] {
        var text: [UInt8] = []
        let path = Array("/proc/\(process.map(String.init) ?? "self")/mountinfo".utf8)
        do throws(SystemError) {
            let file = try Descriptor.open(path, flags: O_RDONLY, label: "mount.table")
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let offset = UInt64(text.count)
                // Typed throws do not pass through withUnsafeMutableBytes.
                let outcome: Result<Int, SystemError> = buffer.withUnsafeMutableBytes { bytes in
                    do throws(SystemError) {
                        return .success(try readFully(file.number, into: bytes, at: offset, label: "mount.table"))
                    } catch {
                        return .failure(error)
                    }
                }
                let count = try outcome.get()
                text += buffer[..<count]
                if count == 0 { break }
            }
        } catch {
            throw Failure(error)
        }
        return parse(text)
    }

    /// Lines that are not understood are skipped.
    package static func parse(_ text: [UInt8]) -> [Entry] {
        text.split(separator: 0x0A).compactMap { line in
            let fields = line.split(separator: 0x20)
            // Optional fields stand between the sixth and a lone hyphen.
            guard fields.count > 6, let hyphen = fields[6...].firstIndex(of: [0x2D]), hyphen + 2 < fields.count else {
                return nil
            }
            let numbers = fields[2].split(separator: 0x3A).compactMap { UInt32(String(decoding: $0, as: UTF8.self)) }
            guard let identifier = UInt32(String(decoding: fields[0], as: UTF8.self)), numbers.count == 2 else { return nil }
            return Entry(
                mountPoint: unescaped(fields[4]), identifier: identifier, major: numbers[0], minor: numbers[1],
                type: String(decoding: fields[hyphen + 1], as: UTF8.self),
                source: String(decoding: unescaped(fields[hyphen + 2]), as: UTF8.self))
        }
    }

    /// The kernel writes space, tab, newline and backslash as `\NNN`, octal.
    private static func unescaped(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3)
            if byte == 0x5C, digits.count == 3, digits.allSatisfy({ (0x30...0x37).contains($0) }) {
                result.append(digits.reduce(0) { $0 &* 8 &+ ($1 - 0x30) })
                rest = rest.dropFirst(3)
            } else {
                result.append(byte)
            }
        }
        return result
    }
}
