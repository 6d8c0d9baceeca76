import Glibc
import Logging
import PromiseCore
import PromiseSystem

/// The system's programs that make pictures of documents: `*.thumbnailer` files of the freedesktop.org desktops, by the media
/// types of the shared MIME database.
struct Thumbnailers: Sendable {
    /// The words of `Exec`, by media type.
    private var programs: [String: [String]] = [:]
    /// By extension in lower case.
    private var types: [String: String] = [:]
    private let sandbox: ThumbnailSandbox

    /// Larger documents have no picture: it takes a copy, as programs that read what a stranger sent run as nobody.
    static let sourceByteCountMax: UInt64 = 256 << 20

    /// Reads the system's tables. Blocks.
    init(_ logger: Logger) {
        sandbox = ThumbnailSandbox(logger)
        let home = environment("XDG_DATA_HOME") ?? environment("HOME").map { $0 + "/.local/share" }
        let shared = (environment("XDG_DATA_DIRS") ?? "/usr/local/share:/usr/share").split(separator: ":").map(String.init)
        for folder in [home].compactMap({ $0 }) + shared where folder.hasPrefix("/") {
            readPrograms(in: folder + "/thumbnailers")
            readTypes(folder + "/mime/globs2")
        }
    }

    /// The media type that a name stands for.
    func type(of name: FileName) -> String? {
        guard let dot = name.bytes.lastIndex(of: UInt8(ascii: ".")), dot > 0 else { return nil }
        return types[String(decoding: name.bytes[(dot + 1)...], as: UTF8.self).lowercased()]
    }

    func canMake(from type: String) -> Bool { programs[type] != nil }

    /// A PNG of at most `size` pixels a side; nil when there is no program for it, or it failed. `fill` writes the document into
    /// an empty file. Blocks.
    func picture(
        from type: String, size: Int, fill: (CInt) throws(SystemError) -> Void
    ) -> [UInt8]? {
        guard let words = programs[type], let workshop = ThumbnailWorkshop() else { return nil }
        do throws(SystemError) {
            try workshop.makeSource(fill)
        } catch {
            return nil
        }
        let isMade = sandbox.run(in: workshop) { place in
            let (source, result) = (place + "/" + workshop.source, place + "/" + workshop.result)
            return words.map { word in
                var text = word
                let values = [("%i", source), ("%u", "file://" + source), ("%o", result), ("%s", "\(size)"), ("%%", "%")]
                for (mark, value) in values {
                    text = text.split(separator: mark, omittingEmptySubsequences: false).joined(separator: value)
                }
                return text
            }
        }
        guard isMade, let picture = workshop.readResult(countMax: 8 << 20), PictureFile(picture) != nil else { return nil }
        return picture
    }

    // MARK: - Tables

    private mutating func readPrograms(in folder: String) {
        guard let open = try? Descriptor.open(
            Array(folder.utf8), flags: O_RDONLY | O_DIRECTORY, label: "thumbnail.programs.open"),
            let names = try? listFolder(open, label: "thumbnail.programs.list")
        else { return }
        for name in names.map({ String(decoding: $0.name, as: UTF8.self) }).sorted() where name.hasSuffix(".thumbnailer") {
            guard let bytes = readSmallFile(Array("\(folder)/\(name)".utf8)) else { continue }
            var fields: [Substring: Substring] = [:]
            let text = String(decoding: bytes, as: UTF8.self)
            for line in text.split(separator: "\n") {
                let parts = line.split(separator: "=", maxSplits: 1)
                if parts.count == 2 { fields[parts[0]] = parts[1] }
            }
            // Quoted arguments are for a shell, which is not asked.
            guard let command = fields["Exec"], !command.contains(where: { "\"'\\".contains($0) }) else { continue }
            let words = command.split(separator: " ").map(String.init)
            let program = fields["TryExec"].map(String.init) ?? words.first ?? ""
            if program.hasPrefix("/"), access(program, X_OK) != 0 { continue }
            for type in (fields["MimeType"] ?? "").split(separator: ";") where programs[String(type)] == nil {
                programs[String(type)] = words
            }
        }
    }

    /// `50:image/png:*.png`, the weightiest first.
    private mutating func readTypes(_ path: String) {
        guard let bytes = readSmallFile(Array(path.utf8), countMax: 4 << 20) else { return }
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            let parts = line.split(separator: UInt8(ascii: ":"))
            guard parts.count >= 3, parts[2].starts(with: "*.".utf8) else { continue }
            let key = String(decoding: parts[2].dropFirst(2), as: UTF8.self).lowercased()
            if types[key] == nil { types[key] = String(decoding: parts[1], as: UTF8.self) }
        }
    }
}
