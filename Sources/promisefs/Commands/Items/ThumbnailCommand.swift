import ArgumentParser
import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem
import PromiseWire

struct ThumbnailCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "thumbnail",
        abstract: "Show the picture of a document, or put pictures where file managers look for them.",
        discussion: """
            With -o the picture is written to a file. Without, it is put into the desktop's thumbnail cache in every size; of a \
            folder, the pictures of every document below it that has one. With --save a PNG is kept as the picture of a \
            document, and put there, too. Content is never fetched. With --json it is one object.

            Example:
              promisefs thumbnail /mnt/holiday.jpg -o small.png --size 256
              promisefs thumbnail /mnt/pictures
            """)

    @Argument(help: "A document or a folder on a mount.")
    var path: PathArgument
    @Option(name: .customShort("o"), help: ArgumentHelp("Write the picture to this file.", valueName: "file"))
    var file: PathArgument?
    @Option(name: .long, help: ArgumentHelp("Pixels a side at most, up to 1024.", valueName: "pixels"))
    var size = 1024
    @Option(name: .long, help: ArgumentHelp("Keep this PNG as the document's picture.", valueName: "file"))
    var save: PathArgument?
    @OptionGroup var output: OutputOptions

    /// What `--json` shows.
    private struct Document: Encodable {
        /// Documents whose picture was written or kept.
        var pictures: Int
        /// Documents without one.
        var without: Int
    }

    func validate() throws {
        guard (1...1024).contains(size) else { throw ValidationError("a picture has 1 to 1024 pixels a side") }
        if file != nil, save != nil { throw ValidationError("-o and --save are about two pictures; give one of them") }
    }

    func run() async throws {
        do throws(PromiseError) {
            let location = try await Targets.location(of: path)
            let client = try PromiseClient(mount: location.mount)
            if let save {
                guard let picture = await Blocking.run({ readSmallFile(save.bytes, countMax: 8 << 20) }) else {
                    throw PromiseError(.local, "\(escapedForDisplay(save.bytes)) cannot be read", exitStatus: 1)
                }
                try await client.saveThumbnail(picture, of: location.path)
                try await ThumbnailCache.ofUser?.place(location.path, below: location, from: client)
                return show(Document(pictures: 1, without: 0))
            }
            if let file {
                let picture = try await client.thumbnail(of: location.path, size: size)
                try await Blocking.run { () throws(PromiseError) in try ThumbnailCommand.write(picture, to: file.bytes) }
                return show(Document(pictures: 1, without: 0))
            }
            show(try await fillCache(location, client))
        } catch {
            throw CommandFailure(error)
        }
    }

    private func show(_ document: Document) {
        if output.json { return Output.json(document) }
        if document.pictures + document.without != 1 || document.without == 1 {
            Output.line("\(counted(document.pictures, "picture")), \(counted(document.without, "document")) without one")
        }
    }

    private func fillCache(_ location: Location, _ client: PromiseClient) async throws(PromiseError) -> Document {
        guard let cache = ThumbnailCache.ofUser else {
            throw PromiseError(.local, "there is no thumbnail cache; set HOME or XDG_CACHE_HOME", exitStatus: 1)
        }
        var paths = [location.path]
        let isFolder = try await client.information(path: location.path).kind == "folder"
        if isFolder {
            let query = MetadataQuery("promisefs.kind == 'file'").scope(location.path)
            paths = try await query.results(of: client).compactMap { PercentCoding.decode($0.pathBytes[...]) }
                .map { Array($0.drop { $0 == 0x2F }) }
        }
        var document = Document(pictures: 0, without: 0)
        for path in paths {
            do throws(PromiseError) {
                try await cache.place(path, below: location, from: client)
                document.pictures += 1
            } catch {
                // Of a folder, what has no picture is counted.
                guard isFolder, case .refused(let problem) = error.kind, problem.code == "notFound" else { throw error }
                document.without += 1
            }
        }
        return document
    }

    static func write(_ picture: [UInt8], to path: [UInt8]) throws(PromiseError) {
        let file = withCPath(path) { fopen($0, "w") }
        guard let file, fwrite(picture, 1, picture.count, file) == picture.count, fclose(file) == 0 else {
            throw PromiseError(.local, "\(escapedForDisplay(path)) cannot be written", exitStatus: 1)
        }
    }
}
