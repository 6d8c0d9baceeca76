import Glibc
package import PromiseCore
import PromiseKeyValue
package import PromiseSystem

/// What a migration has brought, on the disk: a line for each item, so that it goes on where it was
/// cut off. Blocking; one thread at a time.
package final class MigrationLog {
    /// From where to where it goes.
    package struct Heading: Hashable, Sendable {
        package var from: String
        package var to: String
        /// The root of the new storage.
        package var root: ItemIdentifier
    }

    private static let schema = 1
    /// Lines are read in pieces of so many bytes.
    private static let pieceByteCount = 1 << 20

    private let file: Descriptor
    private var end: UInt64
    package private(set) var heading: Heading?
    package private(set) var items: [MigratedItem] = []
    /// Where something was to be made: whether it was, the new storage knows.
    private(set) var intended: Set<NewPlace> = []
    /// The old storage may say already where the domain is.
    package private(set) var isTold = false

    /// Opens or makes the log. What a power cut left at its end is not believed.
    package init(path: [UInt8]) throws(SystemError) {
        file = try Descriptor.open(
            path, flags: O_RDWR | O_CREAT, mode: 0o600, label: "migration.log.open")
        end = 0
        try read()
        try truncate(file.number, to: end, label: "migration.log.cut")
    }

    private func read() throws(SystemError) {
        let size = try FileStatus.of(descriptor: file.number, label: "migration.log.status").size
        var rest: [UInt8] = []
        var position: UInt64 = 0
        let piece = UnsafeMutableRawBufferPointer.allocate(
            byteCount: MigrationLog.pieceByteCount, alignment: 16)
        defer { piece.deallocate() }
        while position < size {
            let count = try readFully(
                file.number, into: piece, at: position, label: "migration.log.read")
            guard count > 0 else { return }
            position += UInt64(count)
            rest += piece[..<count]
            while let newline = rest.firstIndex(of: 0x0A) {
                guard take(Array(rest[..<newline])) else { return }
                end += UInt64(newline + 1)
                rest.removeFirst(newline + 1)
            }
        }
    }

    /// False for what is no line of a log.
    private func take(_ line: [UInt8]) -> Bool {
        guard let json = JSONReader.read(line) else { return false }
        if heading == nil {
            guard json["schema"]?.integer(Int.self) == MigrationLog.schema,
                let from = json["from"]?.text, let to = json["to"]?.text,
                let root = json["root"]?.text
            else { return false }
            heading = Heading(from: from, to: to, root: ItemIdentifier(root))
            return true
        }
        if let place = NewPlace(json["makes"]) {
            intended.insert(place)
            return true
        }
        if json["told"] != nil {
            isTold = true
            return true
        }
        guard let item = MigratedItem(json) else { return false }
        items.append(item)
        return true
    }

    package func begin(_ heading: Heading) throws(SystemError) {
        try write([
            .map([
                "schema": .number(String(MigrationLog.schema)), "from": .string(heading.from),
                "to": .string(heading.to), "root": .string(heading.root.rawValue),
            ])
        ])
        try synchronize()
        self.heading = heading
    }

    /// What is lost of it in a power cut is found at the new storage again.
    package func add(_ items: [MigratedItem]) throws(SystemError) { try write(items.map(\.json)) }

    /// Before anything is made there.
    func intend(_ place: NewPlace) throws(SystemError) { try write([.map(["makes": place.json])]) }

    /// Before the old storage is made to say where the domain is.
    package func noteTold() throws(SystemError) {
        if isTold { return }
        try write([.map(["told": .bool(true)])])
        try synchronize()
        isTold = true
    }

    package func synchronize() throws(SystemError) {
        try PromiseSystem.synchronize(file.number, dataOnly: true, label: "migration.log.sync")
    }

    private func write(_ lines: [JSON]) throws(SystemError) {
        var bytes: [UInt8] = []
        for line in lines { bytes += line.encoded + [0x0A] }
        try writeFully(file.number, bytes, at: end, label: "migration.log.write")
        end += UInt64(bytes.count)
    }
}
