import PromiseCore

/// Trees of `tar` and `cp -a` have folders that nothing may be put into, with something in them.
enum SealedFolderCheck {
    static let check = ConformanceCheck("a folder without write permission can be worked in", needs: .metadata) { context in
        var metadata = ConformanceContext.metadata
        metadata.mode = 0o555
        let new = NewItem(name: FileName(trusted: Array("sealed".utf8)), kind: .folder, metadata: metadata)
        let made = try await context.provider.create(new, in: context.folder, contents: nil)
        let sealed = context.reference(made)
        let file = try await context.makeFile("file", [1], in: sealed)
        let changed = try await context.provider.modify(
            context.reference(file, in: sealed), changes: ItemChanges(), contents: try context.source([2, 3]),
            baseVersion: file.version)
        try await context.checkContent(changed, is: [2, 3], in: sealed)
        let mode = try await context.provider.item(for: sealed).metadata.mode
        try context.require(mode == 0o555, "its mode is not what it was")
        try await context.provider.delete(context.reference(changed, in: sealed), baseVersion: nil)
        try context.require(try await context.list(sealed).isEmpty, "what was removed in it is there")
    }
}
