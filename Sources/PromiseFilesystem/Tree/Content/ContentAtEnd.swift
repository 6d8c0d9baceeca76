package import PromiseContent
package import PromiseCore
package import PromiseIndex
package import PromiseSystem

/// Contents that were written lately reach the disk before a daemon says that it has ended in order: the next one trusts them,
/// also when the machine was started anew.
package struct ContentAtEnd: Sendable {
    /// What is older the kernel has written by itself: after 30 seconds (vm.dirty_expire_centisecs) and some for the writing.
    private static let age = Duration.seconds(120)
    /// More are synchronized with all that the disk has.
    private static let fileCountMax = 20

    private let index: Index
    private let content: ContentStore
    private let clock: any TimeSource

    package init(index: Index, content: ContentStore, clock: any TimeSource) {
        (self.index, self.content, self.clock) = (index, content, clock)
    }

    package func bringToDisk() throws(Failure) {
        let since = clock.now().advanced(by: .zero - ContentAtEnd.age)
        let nodes = try index.read { transaction throws(Failure) in
            try ContentQuestions.unsynchronized(
                since: since, limit: ContentAtEnd.fileCountMax + 1, transaction)
        }
        if nodes.count > ContentAtEnd.fileCountMax { return try content.synchronizeAll() }
        for node in nodes {
            // One that is missing is no concern of its neighbours'.
            guard let file = try? content.open(node.id, node.generation, writable: false) else { continue }
            try SharedDescriptor(file).synchronize(label: "content.synchronize.end")
        }
    }
}
