import PromiseCore
import PromiseIndex
import PromiseSystem

/// What a content file tells of writes that the kernel has made without telling us.
struct WrittenFile {
    let status: FileStatus
    private let since: Timestamp?

    /// `since`: when a program could write first.
    init(_ file: SharedDescriptor, since: Timestamp?, label: StaticString) throws(Failure) {
        do throws(SystemError) {
            status = try FileStatus.of(descriptor: file.number, label: label)
        } catch {
            throw Failure(error)
        }
        self.since = since
    }

    func hasMoved(from node: Node) -> Bool {
        status.size != node.size || status.modificationTime != node.modificationTime
    }

    /// A write within the clock's granularity of the time before it cannot be told from none.
    func isDoubtful(of node: Node) -> Bool { isDoubtful(after: node.modificationTime) }

    /// It may have been written to since a program can, as far as its own time tells.
    var isRecent: Bool { isDoubtful(after: status.modificationTime) }

    private func isDoubtful(after time: Timestamp) -> Bool {
        since.map { $0.nanoseconds(since: time) < 20_000_000 } ?? true
    }
}
