import PromiseContent
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Testing

/// What programs remove stays for a while, and comes back.
@Suite struct RemovedFilesTests {
    private func kept(_ domain: SimulatedDomain) throws -> [RemovedItem] {
        try domain.index.read { transaction throws(Failure) in try RemovedRows.all(transaction) }
    }

    private func restore(
        _ item: RemovedItem, as name: String, in domain: SimulatedDomain, _ folder: NodeID = .root
    ) throws {
        #expect(try Restoring(domain.filesystem).restore(item, as: FileName(name)!, in: folder))
    }

    /// Index and content files agree, and the start removes nothing that is kept.
    private func expectSound(_ domain: SimulatedDomain) throws {
        domain.engine.remover.flush()
        #expect(try domain.index.verify() == [])
        var verification = domain.filesystem.verifyContent(repair: false)
        #expect(try verification.run().problems == [])
        #expect(try domain.filesystem.removeRubbish() == 0)
    }

    @Test func aDocumentThatWasRemovedComesBackAsItWas() async throws {
        let domain = try SimulatedDomain(removedAge: .seconds(3600))
        try await domain.run {
            try await domain.makeFolder(["folder"])
            try await domain.write("text", to: ["folder", "file"])
            try await domain.setAttribute("user.colour", of: ["folder", "file"], to: "red")
            try await domain.expectBothSidesTheSame("before")
            let before = try await domain.node(at: ["folder", "file"])
            try await domain.remove(["folder"])
            try await domain.expectBothSidesTheSame("removed")
            let items = try kept(domain)
            #expect(items.map { $0.path.map(\.display) } == [["folder"], ["folder", "file"]])
            try expectSound(domain)
            try restore(items[0], as: "folder", in: domain)
            try restore(
                items[1], as: "file", in: domain, try await domain.node(at: ["folder"]).node)
            try await domain.expectBothSidesTheSame("restored")
            #expect(try await domain.tree() == ["folder/", "folder/file=text"])
            let after = try await domain.node(at: ["folder", "file"])
            #expect(
                after.modificationTime == before.modificationTime
                    && after.permissions == before.permissions)
            let colour = try domain.index.read { transaction throws(Failure) in
                try transaction.attribute(Array("user.colour".utf8), of: after.node)
            }
            #expect(colour == Array("red".utf8))
            #expect(try kept(domain).isEmpty)
            try expectSound(domain)
            // The program's own open has nothing to do with what it was before.
            try await domain.write("other", to: ["folder", "file"])
            try await domain.expectBothSidesTheSame("written")
        }
    }

    /// It never replaces what is there, and what was not done leaves no mark.
    @Test func whatComesBackReplacesNothing() async throws {
        let domain = try SimulatedDomain(removedAge: .seconds(3600))
        try await domain.run {
            try await domain.write("old", to: ["file"])
            try await domain.expectBothSidesTheSame("before")
            try await domain.remove(["file"])
            try await domain.write("new", to: ["file"])
            let item = try #require(try kept(domain).first)
            #expect(throws: Failure.self) {
                try Restoring(domain.filesystem).restore(item, as: FileName("file")!, in: .root)
            }
            try expectSound(domain)
            try restore(item, as: "other", in: domain)
            #expect(throws: Failure.self) {
                try Restoring(domain.filesystem).restore(item, as: FileName("third")!, in: .root)
            }
            try await domain.expectBothSidesTheSame()
            #expect(try await domain.tree() == ["file=new", "other=old"])
            try expectSound(domain)
        }
    }

    @Test func whatIsMadeAndRemovedAtOnceOrStaysHereIsNotKept() async throws {
        let domain = try SimulatedDomain(uploadDelay: .seconds(3600), removedAge: .seconds(3600))
        try await domain.run {
            try await domain.write("draft", to: ["draft"])
            try await domain.write("backup", to: ["letter~"])
            try await domain.makeFolder(["folder"])
            for name in ["draft", "letter~", "folder"] { try await domain.remove([name]) }
            #expect(try kept(domain).isEmpty)
        }
    }

    /// A program may work in it, or have it open. A daemon that starts does not know what the kernel names.
    @Test(arguments: [false, true]) func aRemovedFolderThatTheKernelNamesAnswersAndChanges(isResumed: Bool) async throws {
        let domain = try SimulatedDomain()
        var made: NodeID?
        func remove(in domain: SimulatedDomain, _ node: NodeID) async throws {
            try await domain.removeFolder(["folder"])
            #expect(try domain.filesystem.attributes(of: node, handle: nil).attributes.links == 0)
            #expect(try await domain.give(permissions: 0o700, to: node).permissions == 0o700)
            #expect(try domain.filesystem.attributes(of: node, handle: nil).attributes.permissions == 0o700)
            domain.filesystem.forget(node, lookups: 10)
            #expect(throws: Failure.self) { _ = try domain.filesystem.attributes(of: node, handle: nil) }
            try await domain.expectBothSidesTheSame()
        }
        try await domain.run {
            try await domain.makeFolder(["folder"])
            made = try await domain.node(at: ["folder"]).node
            try await domain.expectBothSidesTheSame("before")
            if !isResumed { try await remove(in: domain, try #require(made)) }
        }
        guard isResumed else { return }
        let next = try SimulatedDomain(after: domain)
        try await next.run {
            next.filesystem.resumeOpenFiles()
            try await remove(in: next, try #require(made))
        }
    }

    /// A program that worked in it got `ESTALE` for everything.
    @Test func aFolderThatOthersRemoveAnswersWhileTheKernelNamesIt() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.makeFolder(["folder"])
            let node = try await domain.node(at: ["folder"]).node
            try await domain.expectBothSidesTheSame("before")
            await domain.provider.remove(at: ["folder"])
            try await domain.expectBothSidesTheSame("removed")
            // Programs are told after the index.
            for _ in 0..<1_000 where (try? domain.filesystem.attributes(of: node, handle: nil)) == nil {
                try await Task.sleep(for: .milliseconds(2))
            }
            #expect(try domain.filesystem.attributes(of: node, handle: nil).attributes.links == 0)
            #expect(try await domain.give(permissions: 0o700, to: node).permissions == 0o700)
            domain.filesystem.forget(node, lookups: 1_000)
            #expect(throws: Failure.self) { _ = try domain.filesystem.attributes(of: node, handle: nil) }
        }
    }

    @Test func onlyTheLastNameThatGoesKeepsAFile() async throws {
        let domain = try SimulatedDomain(removedAge: .seconds(3600))
        try await domain.run {
            try await domain.write("text", to: ["one"])
            try await domain.expectBothSidesTheSame("before")
            try await domain.addName(["two"], to: ["one"])
            try await domain.remove(["one"])
            #expect(try kept(domain).isEmpty)
            try await domain.expectBothSidesTheSame("one name")
            try await domain.remove(["two"])
            #expect(try kept(domain).map { $0.path.map(\.display) } == [["two"]])
            try expectSound(domain)
        }
    }

    /// What is written until the last close belongs to it.
    @Test(arguments: [false, true]) func aFileThatIsOpenWhenItIsRemovedIsKeptAsItIsInTheEnd(
        isKilled: Bool
    ) async throws {
        let domain = try SimulatedDomain(removedAge: .seconds(3600))
        try await domain.run {
            try await domain.write("start", to: ["file"])
            try await domain.expectBothSidesTheSame("before")
            let file = try await domain.open(["file"])
            try await domain.remove(["file"])
            try await domain.write("much more", to: file)
            let item = try #require(try kept(domain).first)
            #expect(throws: Failure.self, "it is open") {
                try Restoring(domain.filesystem).restore(item, as: FileName("file")!, in: .root)
            }
            if isKilled { return }
            domain.close(file)
            let settled = try #require(try kept(domain).first)
            #expect(settled.size == 9)
            try expectSound(domain)
            try restore(settled, as: "file", in: domain)
            #expect(try await domain.tree() == ["file=much more"])
        }
        guard isKilled else { return }
        let next = try SimulatedDomain(after: domain, removedAge: .seconds(3600))
        try await next.run {
            try expectSound(next)
            try restore(try #require(try kept(next).first), as: "file", in: next)
            #expect(try await next.tree() == ["file=much more"])
        }
    }

    /// > What is kept costs a row
    @Test func whatIsKeptGivesWayTheOldestFirstAndIsGoneThen() async throws {
        let domain = try SimulatedDomain(removedAge: .seconds(3600))
        try await domain.run {
            for name in ["a", "b", "c"] { try await domain.write(name, to: [name]) }
            try await domain.expectBothSidesTheSame("before")
            for name in ["a", "b", "c"] { try await domain.remove([name]) }
            let items = try kept(domain)
            #expect(items.count == 3 && items.allSatisfy { $0.localBytes > 0 })
            #expect(try domain.engine.removed.drop(atLeast: 1) == items[2].localBytes)
            #expect(try kept(domain).map { $0.path[0].display } == ["c", "b"])
            domain.engine.remover.flush()
            #expect(
                try domain.content.status(items[2].node, items[2].generation) == nil,
                "its room is free")
            #expect(try domain.content.status(items[1].node, items[1].generation) != nil)
            #expect(throws: Failure.self) {
                try Restoring(domain.filesystem).restore(items[2], as: FileName("a")!, in: .root)
            }
            try domain.engine.removed.drop(before: items[0].removalTime)
            #expect(try kept(domain).map { $0.path[0].display } == ["c"])
            try expectSound(domain)
        }
        // Without the trash what was kept goes.
        let next = try SimulatedDomain(after: domain)
        try await next.run {
            try next.engine.removed.dropOld()
            #expect(try kept(next).isEmpty)
            try expectSound(next)
        }
    }

    /// Nothing said that they had been there at all. However many they are, what is kept stays.
    @Test func whatWasNotHereIsToldOfAndTakesNoRoomFromWhatIsKept() async throws {
        let domain = try SimulatedDomain(removedAge: .seconds(3600))
        try await domain.run {
            try await domain.write("text", to: ["file"])
            try await domain.expectBothSidesTheSame("before")
            let node = try await domain.node(at: ["file"]).node
            try await domain.remove(["file"])
            var far = try #require(try kept(domain).first)
            for number in 0..<1_200 {
                far.path = [FileName("far \(number)")!]
                let item = far
                try domain.index.write { transaction throws(Failure) in try RemovedRows.mention(item, transaction) }
            }
            let items = try kept(domain)
            #expect((900...1_000).contains(items.count { !$0.isKept }))
            #expect(items.first?.path == [FileName("far 1199")!])
            #expect(items.filter(\.isKept).map(\.node) == [node])
            let totals = try domain.index.read { transaction throws(Failure) in RemovedRows.totals(transaction) }
            #expect(totals.count == 1)
            #expect(throws: Failure.self) {
                try Restoring(domain.filesystem).restore(items[0], as: FileName("far")!, in: .root)
            }
            try expectSound(domain)
            try domain.engine.removed.drop(items.filter { !$0.isKept })
            try restore(try #require(try kept(domain).first), as: "file", in: domain)
            #expect(try await domain.tree() == ["file=text"])
            try expectSound(domain)
        }
    }

    /// Its content may be torn, and nobody has another copy to compare it with.
    @Test func whatWasNotOnTheDiskIsNotTrustedAfterAPowerCut() async throws {
        let domain = try SimulatedDomain(removedAge: .seconds(3600))
        try await domain.run {
            for name in ["synced", "torn"] { try await domain.write(name, to: [name]) }
            try await domain.expectBothSidesTheSame("before")
            let synced = try await domain.node(at: ["synced"]).node
            // As fsync notes it.
            try domain.index.write { transaction throws(Failure) in
                guard var node = try transaction.node(synced) else { return }
                node.durability = .whole
                try transaction.update(node)
            }
            for name in ["synced", "torn"] { try await domain.remove([name]) }
            #expect(try kept(domain).count == 2)
        }
        let next = try SimulatedDomain(after: domain, removedAge: .seconds(3600))
        try next.filesystem.recover(isUnclean: true, hasPowerFailed: true)
        try await next.run {
            #expect(try kept(next).map { $0.path[0].display } == ["synced"])
            try expectSound(next)
        }
    }
}
