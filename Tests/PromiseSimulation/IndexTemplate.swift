import Glibc
import PromiseIndex
import PromiseSystem

/// An index in which nothing has happened, made once: making its tables takes a tenth of the time of a schedule.
///
/// Unchecked, as only the simulation's thread touches it.
final class IndexTemplate: @unchecked Sendable {
    private let folder: [UInt8]
    private var names: [[UInt8]] = []

    init(_ folder: [UInt8]) { self.folder = folder }

    /// Puts the files of a new index into a folder that has none.
    func copy(to other: [UInt8]) throws {
        if names.isEmpty { try make() }
        for name in names { try copy(folder + [0x2F] + name, to: other + [0x2F] + name) }
    }

    private func make() throws {
        try makeFolders(folder, label: "simulation.template")
        try SimulatedMachine.openIndex(in: folder, VirtualClock()).close()
        let listed = try Descriptor.open(
            folder, flags: O_RDONLY | O_DIRECTORY, label: "simulation.template.open")
        names = try listFolder(listed, label: "simulation.template.list").map(\.name)
    }

    private func copy(_ path: [UInt8], to other: [UInt8]) throws {
        let source = try Descriptor.open(path, flags: O_RDONLY, label: "simulation.template.read")
        let target = try Descriptor.open(
            other, flags: O_WRONLY | O_CREAT | O_EXCL, mode: 0o600, label: "simulation.template.copy")
        let size = try FileStatus.of(descriptor: source.number, label: "simulation.template.size").size
        var bytes = [UInt8](repeating: 0, count: Int(size))
        _ = try bytes.withUnsafeMutableBytes {
            try readFully(source.number, into: $0, at: 0, label: "simulation.template.read")
        }
        try writeFully(target.number, bytes, at: 0, label: "simulation.template.write")
    }
}
