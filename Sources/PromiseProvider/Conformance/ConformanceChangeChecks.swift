import PromiseCore

// The change feed names what happened, or where.

extension ConformanceSuite {
    static let changeChecks: [ConformanceCheck] = [
        ConformanceCheck("the change feed names a new item", needs: .changeFeed) { context in
            try await context.expectChange("a new file") { _ in try await context.makeFile("file", [1]) }
        },
        ConformanceCheck("the change feed names new content", needs: .changeFeed) { context in
            let made = try await context.makeFile("file", [1])
            try await context.expectChange("new content") { _ in
                try await context.provider.modify(
                    context.reference(made), changes: ItemChanges(), contents: try context.source([2, 2]),
                    baseVersion: made.version)
            }
        },
        ConformanceCheck("the change feed names a rename", needs: .changeFeed) { context in
            let made = try await context.makeFile("file", [1])
            try await context.expectChange("a rename") { _ in
                try await context.provider.modify(
                    context.reference(made), changes: ItemChanges(place: (context.folder, FileName(trusted: Array("new".utf8)))),
                    contents: nil, baseVersion: nil)
            }
        },
        ConformanceCheck("the change feed names a deleted item", needs: .changeFeed) { context in
            let made = try await context.makeFile("file", [1])
            try await context.expectChange("a deleted file") { _ in
                try await context.provider.delete(context.reference(made), baseVersion: nil)
                return made
            }
        },
        ConformanceCheck("the change feed is silent when nothing happens", needs: .changeFeed) { context in
            _ = try await context.makeFile("file", [1])
            _ = try await context.list()
            try await context.settle()
            let anchor = try await context.provider.currentAnchor()
            _ = try await context.list()
            let page = try await context.provider.changes(since: anchor)
            try context.require(
                page.updated.isEmpty && page.deleted.isEmpty && page.foldersToList.isEmpty,
                "changes are told where only a listing happened")
        },
        ConformanceCheck("an unknown anchor has expired", needs: .changeFeed) { context in
            try await context.expect(.anchorExpired, "asking for changes since an unknown anchor") {
                _ = try await context.provider.changes(since: Anchor(rawValue: "no anchor of this provider"))
            }
        },
        ConformanceCheck("a wait for changes ends when something happens", needs: [.changeFeed, .changePush]) { context in
            _ = try await context.list()
            try await context.settle()
            let anchor = try await context.provider.currentAnchor()
            let hasReturned = await withTaskGroup(of: Bool.self) { group in
                group.addTask { (try? await context.provider.waitForChanges(since: anchor)) != nil }
                group.addTask {
                    try? await Task.sleep(for: .seconds(10))
                    return false
                }
                _ = try? await context.makeFile("file", [1])
                defer { group.cancelAll() }
                return await group.next() ?? false
            }
            try context.require(hasReturned, "the wait did not end within 10 s")
        },
        ConformanceCheck("a wait for changes can be cancelled", needs: .changePush) { context in
            _ = try await context.list()
            try await context.settle()
            let anchor = try await context.provider.currentAnchor()
            let wait = Task { try await context.provider.waitForChanges(since: anchor) }
            try await Task.sleep(for: .milliseconds(50))
            wait.cancel()
            try await context.expect(.cancelled, "a cancelled wait") { try await wait.value }
        },
    ]
}

extension ConformanceContext {
    /// Lists the folder, lets `change` happen, and demands that the feed names the item or the folder within 10 s.
    func expectChange(_ what: String, _ change: (ItemReference) async throws -> Item) async throws {
        _ = try await list()
        try await settle()
        var anchor = try await provider.currentAnchor()
        let item = try await change(folder)
        for _ in 0..<200 {
            let page = try await provider.changes(since: anchor)
            let isNamed =
                page.foldersToList.contains(folder.identifier) || page.deleted.contains(item.identifier)
                || page.updated.contains { $0.identifier == item.identifier }
            if isNamed { return }
            anchor = page.anchor
            try await Task.sleep(for: .milliseconds(50))
        }
        throw ConformanceFailure("\(what) was not named within 10 s")
    }

    /// Waits until what was done so far has gone through the feed: 100 ms without news, 5 s at most.
    func settle() async throws {
        guard provider.capabilities.contains(.changeFeed) else { return }
        var anchor = try await provider.currentAnchor()
        for _ in 0..<50 {
            try await Task.sleep(for: .milliseconds(100))
            let now = try await provider.currentAnchor()
            if now == anchor { return }
            anchor = now
        }
    }
}
