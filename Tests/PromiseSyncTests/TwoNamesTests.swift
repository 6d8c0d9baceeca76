import PromiseContent
import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Testing

/// Two names of one node are two items at the provider, which knows nothing of links.
@Suite(.timeLimit(.minutes(5))) struct TwoNamesTests {
    /// The node took the mode of one item, and the other item kept its own at the provider for ever.
    @Test(arguments: ["a", "b"]) func aModeThatOthersGaveToOneNameReachesTheItemOfTheOther(
        changed: String
    ) async throws {
        let fixture = try EngineFixture()
        try await fixture.run {
            try await fixture.list()
            try fixture.create("a", "text")
            try fixture.link("a", to: "b")
            #expect(await fixture.eventually { await fixture.provider.names() == ["a=text", "b=text"] })
            #expect(try await fixture.eventually { try fixture.isQuiet() })
            let identifier = try #require(try fixture.entry(changed)?.identifier)
            await fixture.provider.change(identifier, mode: 0o600)
            #expect(try await fixture.eventually { try fixture.node("a")?.mode == 0o600 })
            let isTold = await fixture.eventually {
                await fixture.provider.items.values.filter { $0.item.kind == .file }
                    .allSatisfy { $0.item.metadata.mode == 0o600 }
            }
            #expect(isTold)
            #expect(try await fixture.eventually { try fixture.isQuiet() })
            #expect(try fixture.entry("a")?.node == fixture.entry("b")?.node)
        }
    }

    /// Of a file of which a part was here; the other name was not sent yet, and others had one like it. Both names
    /// read as zeros then, where the rest could be fetched still.
    @Test func aConflictOfOneNameLeavesTheContentOfTheOther() async throws {
        let fixture = try EngineFixture()
        await fixture.provider.put("a", "some text")
        try await fixture.run {
            var node = try await fixture.listed("a")
            let file = try fixture.content.create(node.id, node.generation)
            let bytes = Array("some".utf8)
            try bytes.withUnsafeBytes {
                try writeFully(file.number, $0, at: 0, label: "test.write")
            }
            node.content = .partial
            try fixture.index.write { [node] transaction throws(Failure) in
                try transaction.update(node)
                try transaction.setRanges(of: node.id, to: ByteRangeSet([ByteRange(0, 4)]))
            }
            await fixture.provider.put("b", "of others")
            try fixture.link("a", to: "b")
            let isSent = await fixture.eventually {
                let names = await fixture.provider.names()
                return names.count == 3 && names.filter { $0.hasSuffix("=some text") }.count == 2
            }
            let names = await fixture.provider.names()
            #expect(isSent, "\(names)")
            #expect(try await fixture.eventually { try fixture.isQuiet() })
            try await fixture.hydrate(node.id)
            #expect(try fixture.text("a") == "some text")
        }
    }

    /// The other name led elsewhere from then on, which nobody had asked for.
    @Test func aLinkThatOthersLedElsewhereLeavesItsSecondName() async throws {
        let fixture = try EngineFixture()
        try await fixture.run {
            try await fixture.list()
            try fixture.createLink("a", target: "here")
            try fixture.link("a", to: "b")
            #expect(await fixture.eventually { await fixture.provider.names() == ["a=", "b="] })
            #expect(try await fixture.eventually { try fixture.isQuiet() })
            let identifier = try #require(try fixture.entry("a")?.identifier)
            await fixture.provider.change(identifier, target: "elsewhere")
            #expect(try await fixture.eventually { try fixture.target("a") == "elsewhere" })
            #expect(try await fixture.eventually { try fixture.isQuiet() })
            #expect(try fixture.target("b") == "here")
            let targets = await fixture.provider.items.values.compactMap(\.item.target)
            #expect(targets.map { String(decoding: $0, as: UTF8.self) }.sorted() == ["elsewhere", "here"])
        }
    }
}

extension EngineFixture {
    /// As `ln` makes a second name.
    fileprivate func link(_ name: String, to other: String) throws {
        try index.write { transaction throws(Failure) in
            guard let entry = try transaction.entry(in: .root, named: FileName(name)!),
                var node = try transaction.node(entry.node)
            else { return }
            node.linkCount += 1
            try transaction.update(node)
            let second = try transaction.insertEntry(
                in: .root, named: FileName(other)!, node: node.id, identifier: nil)
            try transaction.setPending(
                Pending(subject: .entry(second.id), since: .zero, due: .zero))
        }
        engine.notePending()
    }

    fileprivate func createLink(_ name: String, target: String) throws {
        try index.write { transaction throws(Failure) in
            var node = Node(
                id: .root, kind: .link, mode: 0o777, owner: 0, group: 0,
                size: UInt64(target.utf8.count), time: SystemClock().now(), content: .absent)
            node.target = Array(target.utf8)
            node = try transaction.insert(node)
            let entry = try transaction.insertEntry(
                in: .root, named: FileName(name)!, node: node.id, identifier: nil)
            try transaction.setPending(Pending(subject: .entry(entry.id), since: .zero, due: .zero))
        }
        engine.notePending()
    }

    fileprivate func target(_ name: String) throws -> String? {
        try node(name)?.target.map { String(decoding: $0, as: UTF8.self) }
    }
}
