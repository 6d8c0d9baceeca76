import PromiseCore

/// What items are called for good leads back to them, also after a move and an edit.
enum PersistentIdentifierCheck {
    static let check = ConformanceCheck(
        "an item is found by what it is called for good", needs: .persistentIdentifiers
    ) { context in
        let provider = context.provider
        let folder = try await context.makeFolder("folder")
        let file = try await context.makeFile("file", [1])
        func name(_ item: Item) async throws -> String? {
            try await provider.persistentIdentifier(of: context.reference(item))
        }
        let (named, other) = (try await name(file), try await name(folder))
        guard let named, let other else {
            throw ConformanceFailure("an item that is there has no name for good")
        }
        try context.require(named != other, "two items have one name for good")
        let changed = try await provider.modify(
            context.reference(file),
            changes: ItemChanges(
                place: (context.reference(folder), FileName(trusted: Array("moved".utf8)))),
            contents: try context.source([2, 3]), baseVersion: file.version)
        try context.require(
            try await provider.identifier(ofPersistent: named) == changed.identifier,
            "it does not lead to the item after a move")
        let moved = ItemReference(identifier: changed.identifier, path: [])
        try context.require(
            try await provider.persistentIdentifier(of: moved) == named,
            "an item that was moved has another name for good")
        try await provider.delete(moved, baseVersion: changed.version)
        try context.require(
            try await provider.identifier(ofPersistent: named) == nil,
            "the name of an item that is gone leads somewhere")
    }
}
