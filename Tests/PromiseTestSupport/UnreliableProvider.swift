package import PromiseCore
package import PromiseProvider
import Synchronization

/// A provider on a bad line, until it is calm: a part of the calls fails at once, and a part is carried out and its answer lost.
/// From a seed, as far as the order of calls repeats. Import PromiseProvider for its members.
package final class UnreliableProvider: Provider {
    private enum Trouble { case none, delay(Duration), failure(ProviderError), lostAnswer }

    private let wrapped: any Provider
    private let line: Mutex<(random: SeededGenerator, isCalm: Bool)>

    package init(_ wrapped: any Provider, seed: UInt64) {
        self.wrapped = wrapped
        line = Mutex((SeededGenerator(seed: seed), false))
    }

    package func calmDown() { line.withLock { $0.isCalm = true } }

    package var name: String { wrapped.name }
    package var capabilities: Capabilities { wrapped.capabilities }

    private func trouble() -> Trouble {
        line.withLock { line in
            if line.isCalm { return .none }
            switch line.random.next() % 24 {
            case 0: return .failure(ProviderError(.retry, "the line is bad"))
            case 1: return .failure(ProviderError(.offline, "the line is gone"))
            case 2, 3: return .lostAnswer
            case 4, 5: return .delay(.milliseconds(Int(line.random.next() % 10)))
            default: return .none
            }
        }
    }

    private func carry<Value: Sendable>(
        _ body: () async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        switch trouble() {
        case .none: return try await body()
        case .delay(let time):
            // A call that was cancelled goes on.
            try? await Task.sleep(for: time)
            return try await body()
        case .failure(let error): throw error
        case .lostAnswer:
            _ = try await body()
            throw ProviderError(.retry, "the answer was lost")
        }
    }

    package func connect() async throws(ProviderError) {
        try await carry { () async throws(ProviderError) in try await wrapped.connect() }
    }

    package func root() async throws(ProviderError) -> Item {
        try await carry { () async throws(ProviderError) in try await wrapped.root() }
    }

    package func item(for reference: ItemReference) async throws(ProviderError) -> Item {
        try await carry { () async throws(ProviderError) in try await wrapped.item(for: reference) }
    }

    package func enumerateItems(in folder: ItemReference, page: PageToken?) async throws(ProviderError) -> ItemPage {
        try await carry { () async throws(ProviderError) in try await wrapped.enumerateItems(in: folder, page: page) }
    }

    package func currentAnchor() async throws(ProviderError) -> Anchor {
        try await carry { () async throws(ProviderError) in try await wrapped.currentAnchor() }
    }

    package func changes(since anchor: Anchor) async throws(ProviderError) -> ChangePage {
        try await carry { () async throws(ProviderError) in try await wrapped.changes(since: anchor) }
    }

    package func waitForChanges(since anchor: Anchor) async throws(ProviderError) {
        try await carry { () async throws(ProviderError) in try await wrapped.waitForChanges(since: anchor) }
    }

    package func fetchContents(
        of reference: ItemReference, version: ContentVersion, range: ByteRange?, into sink: any ContentSink
    ) async throws(ProviderError) {
        try await carry { () async throws(ProviderError) in
            try await wrapped.fetchContents(of: reference, version: version, range: range, into: sink)
        }
    }

    package func create(
        _ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?
    ) async throws(ProviderError) -> Item {
        try await carry { () async throws(ProviderError) in try await wrapped.create(item, in: folder, contents: contents) }
    }

    package func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?, baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        try await carry { () async throws(ProviderError) in
            try await wrapped.modify(reference, changes: changes, contents: contents, baseVersion: baseVersion)
        }
    }

    package func delete(_ reference: ItemReference, baseVersion: ContentVersion?) async throws(ProviderError) {
        try await carry { () async throws(ProviderError) in
            try await wrapped.delete(reference, baseVersion: baseVersion)
        }
    }
}
