import Synchronization

/// Tells whoever wants to know that a program has changed an attribute of an item. Thread-safe.
package final class AttributeNews: Sendable {
    private struct Listener: Sendable { var body: @Sendable () -> Void }

    private static let prefix = Array("user.".utf8)

    private let listener = Mutex<Listener?>(nil)

    /// `body` is called by threads that serve the mount: it waits for nothing.
    package func whenChanged(_ body: @escaping @Sendable () -> Void) {
        listener.withLock { $0 = Listener(body: body) }
    }

    func note(_ name: [UInt8]) {
        if name.starts(with: AttributeNews.prefix) { listener.withLock { $0 }?.body() }
    }
}
