import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

/// Remote changes that cannot be followed as they come.
@Suite(.timeLimit(.minutes(2))) struct WaitingChangeTests {
    @Test(arguments: [NodeKind.folder, .file])
    func anItemOfAnotherKindUnderTheSameIdentifierIsAnotherItem(_ kind: NodeKind) async throws {
        let fixture = try EngineFixture()
        let identifier = await fixture.provider.put("a", "text", kind: kind)
        if kind == .folder { await fixture.provider.put("inside", "in", in: identifier) }
        try await fixture.run {
            let node = try await fixture.listed("a").id
            if kind == .folder { try await fixture.list(node) } else { try await fixture.hydrate(node) }
            let other: NodeKind = kind == .folder ? .file : .folder
            await fixture.provider.replace(identifier, by: other, other == .file ? "other" : "")
            #expect(try await fixture.eventually { try fixture.node("a")?.kind == other })
            guard other == .file else { return }
            try await fixture.hydrate(try #require(try fixture.node("a")).id)
            #expect(try fixture.text("a") == "other")
        }
    }

    /// It stood here as a file for ever, as what both sides had agreed on was the folder.
    @Test func aFolderThatCameWhereAFileWasBeingChangedIsSeen() async throws {
        let memory = MemoryProvider()
        let identifier = await memory.put("a", "text")
        let fixture = try EngineFixture(memory, mediator: ReplacingProvider(memory: memory))
        try await fixture.run {
            try await fixture.list()
            try fixture.rename("a", to: "b")
            #expect(try await fixture.eventually { try fixture.node("b")?.kind == .folder })
            #expect(try await fixture.eventually { try fixture.isQuiet() })
            #expect(await memory.names() == ["b/"])
            #expect(try fixture.entry("b")?.identifier == identifier)
        }
    }

    /// It stood for the version before, which nobody had any more, and was tried for ever.
    @Test func aSecondNameOfWhatHasNotComeGoesOnWithTheNewVersion() async throws {
        let fixture = try EngineFixture()
        let identifier = await fixture.provider.put("a", "old")
        let gate = Gate()
        await fixture.provider.holdFetches(at: gate)
        try await fixture.run {
            let node = try await fixture.listed("a")
            try fixture.index.write { transaction throws(Failure) in
                var linked = node
                linked.linkCount = 2
                try transaction.update(linked)
                let entry = try transaction.insertEntry(in: .root, named: FileName("b")!, node: node.id, identifier: nil)
                try transaction.setPending(Pending(subject: .entry(entry.id), since: .zero, due: .zero))
            }
            fixture.engine.notePending()
            await fixture.provider.change(identifier, text: "newer")
            #expect(try await fixture.eventually { try fixture.node("a")?.size == 5 })
            gate.open()
            #expect(await fixture.eventually { await fixture.provider.names() == ["a=newer", "b=newer"] })
        }
    }

    /// The name is taken at the provider, and nobody here has asked for what is in the folder: it was sent again
    /// and again.
    @Test func aNameThatIsTakenInAFolderThatNobodyListsIsMet() async throws {
        let provider = PlaceProvider()
        let fixture = try EngineFixture(provider.memory, mediator: provider)
        await fixture.provider.put("file", "of others")
        try await fixture.run {
            try fixture.create("file", "mine")
            let isQuiet = try await fixture.eventually { try fixture.isQuiet() }
            #expect(isQuiet)
            let names = await fixture.provider.names()
            #expect(names.contains("file=of others"))
            let isOursThere = names.contains { $0.hasSuffix("=mine") }
            #expect(isOursThere, "\(names)")
        }
    }

    /// It was tried for ever: there is nothing that it could be made of.
    @Test(arguments: [false, true]) func aSecondNameOfWhatOthersRemovedBeforeItCameEnds(hasPieces: Bool) async throws {
        let fixture = try EngineFixture()
        let identifier = await fixture.provider.put("a", "some text")
        let gate = Gate()
        await fixture.provider.holdFetches(at: gate)
        try await fixture.run {
            var linked = try await fixture.listed("a")
            if hasPieces {
                let file = try fixture.content.create(linked.id, linked.generation)
                let bytes = Array("some".utf8)
                try bytes.withUnsafeBytes { try writeFully(file.number, $0, at: 0, label: "test.write") }
                linked.content = .partial
            }
            linked.linkCount = 2
            try fixture.index.write { [linked] transaction throws(Failure) in
                try transaction.update(linked)
                if hasPieces { try transaction.setRanges(of: linked.id, to: ByteRangeSet([ByteRange(0, 4)])) }
                let entry = try transaction.insertEntry(in: .root, named: FileName("b")!, node: linked.id, identifier: nil)
                try transaction.setPending(Pending(subject: .entry(entry.id), since: .zero, due: .zero))
            }
            fixture.engine.notePending()
            await fixture.provider.remove(identifier)
            gate.open()
            let isOver = try await fixture.eventually {
                try fixture.names().allSatisfy { $0.contains("conflict") } && fixture.names().isEmpty == !hasPieces
            }
            #expect(isOver)
            if hasPieces {
                let name = try #require(try fixture.names().first)
                let text = try fixture.text(name)
                #expect(name.hasPrefix("b (conflict"))
                #expect(text?.hasPrefix("some") == true)
                let isSaid = try await fixture.eventually {
                    let failed = try fixture.index.read { transaction throws(Failure) in
                        try transaction.allPending(limit: 10).compactMap(\.message)
                    }
                    return failed.contains { $0.contains("the bytes 4 to 8 are missing") }
                }
                #expect(isSaid)
            } else {
                #expect(try await fixture.eventually { try fixture.isQuiet() })
            }
        }
    }

    @Test func changesThatWaitForClaimsHoldUpNoOthers() async throws {
        let fixture = try EngineFixture()
        var identifiers: [ItemIdentifier] = []
        for number in 0..<300 { identifiers.append(await fixture.provider.put("\(number)", "old")) }
        let last = await fixture.provider.put("last", "old")
        try await fixture.run {
            try await fixture.list()
            let nodes = try (0..<300).map { try #require(try fixture.node("\($0)")).id }
            fixture.observer.claims.withLock { $0.held = Set(nodes) }
            for identifier in identifiers { await fixture.provider.change(identifier, text: "changed") }
            await fixture.provider.change(last, text: "changed, too")
            #expect(try await fixture.eventually { try fixture.node("last")?.size == 12 })
            #expect(try fixture.node("0")?.size == 3)
            fixture.observer.claims.withLock { $0.held = [] }
            fixture.engine.followAgain()
            #expect(try await fixture.eventually { try fixture.node("299")?.size == 7 })
        }
    }

    @Test func aConflictIsResolvedWhenTheClaimIsGranted() async throws {
        let fixture = try EngineFixture()
        let identifier = await fixture.provider.put("a", "base")
        try await fixture.run {
            let node = try await fixture.listed("a").id
            try await fixture.hydrate(node)
            fixture.observer.claims.withLock { $0.held = [node] }
            await fixture.provider.change(identifier, text: "theirs")
            try fixture.edit("a", "our edit")
            let isKnown = try await fixture.eventually {
                try fixture.index.read { transaction throws(Failure) in try transaction.remote(identifier) != nil }
            }
            #expect(isKnown)
            try await Task.sleep(for: .milliseconds(400))
            #expect(try fixture.names() == ["a"])
            // Granted for a moment only, as when a presenter has let go.
            fixture.observer.claims.withLock { $0.isGranted = true }
            fixture.engine.followAgain()
            #expect(try await fixture.eventually { try fixture.names().count == 2 })
        }
    }
}

/// Answers for what it has made with an item that was there before.
private struct MistakingProvider: ForwardingProvider {
    let memory: MemoryProvider

    func create(_ item: NewItem, in folder: ItemReference, contents: (any ContentSource)?) async throws(ProviderError) -> Item {
        var made = try await memory.create(item, in: folder, contents: contents)
        guard let other = await memory.item(at: [FileName("a")!]) else { return made }
        made.identifier = other.item.identifier
        return made
    }
}

@Suite(.timeLimit(.minutes(2))) struct MistakenAnswerTests {
    /// What had been made took the place of the other item, whose content was overwritten at the next edit.
    @Test func whatWasMadeIsNotTakenForAnItemThatWasThereBefore() async throws {
        let provider = MistakingProvider(memory: MemoryProvider())
        let fixture = try EngineFixture(provider.memory, mediator: provider)
        await provider.memory.put("a", "theirs")
        try await fixture.run {
            try await fixture.list()
            try fixture.create("new", "ours")
            #expect(await fixture.eventually { await provider.memory.names() == ["a=theirs", "new=ours"] })
            fixture.engine.lookNow()
            try await Task.sleep(for: .seconds(1))
            let named = try fixture.index.read { transaction throws(Failure) in
                let folder = try transaction.children(of: .root)
                return folder.first { $0.name == FileName("a") }?.identifier
            }
            #expect(named == (await provider.memory.item(at: [FileName("a")!]))?.item.identifier)
            #expect(try fixture.names().contains("new"))
        }
    }
}

/// Somebody makes a folder of each item that is changed, before the answer is made.
private struct ReplacingProvider: ForwardingProvider {
    let memory: MemoryProvider

    func modify(
        _ reference: ItemReference, changes: ItemChanges, contents: (any ContentSource)?, baseVersion: ContentVersion?
    ) async throws(ProviderError) -> Item {
        _ = try await memory.modify(reference, changes: changes, contents: contents, baseVersion: baseVersion)
        await memory.replace(reference.identifier, by: .folder)
        return try await memory.item(for: reference)
    }
}
