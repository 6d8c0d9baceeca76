import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseProvider
import PromiseSync
import PromiseSystem
import PromiseTestSupport
import Testing

/// What stood still, got lost or came to be seen by nobody when the same folders were changed here and at the provider.
@Suite struct TwoSidesTests {
    /// Runs `here` and `there` without either side hearing of the other, and expects `result` on both in the end.
    private func apart(
        _ made: [[String]], here: (SimulatedDomain) async throws -> Void, there: (MemoryProvider) async -> Void,
        result: [String], then: (MemoryProvider) async -> Void = { _ in }
    ) async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await make(made, in: domain)
            await domain.provider.fail(ProviderError(.offline, "the network is gone"))
            try await here(domain)
            await there(domain.provider)
            await domain.provider.fail(nil)
            try await domain.expectBothSidesTheSame()
            #expect(await domain.provider.tree() == result)
            await then(domain.provider)
        }
    }

    /// What begins with a `d` is a folder.
    private func make(_ paths: [[String]], in domain: SimulatedDomain) async throws {
        for path in paths {
            if path.last!.hasPrefix("d") {
                try await domain.makeFolder(path)
            } else {
                try await domain.write("first", to: path)
            }
        }
        try await domain.expectBothSidesTheSame("before")
    }

    /// The answer to `once`, which leaves `arrived` at the provider, is lost, or comes late; `again` is done before that is
    /// noticed.
    private func withoutAnAnswer(
        _ domain: SimulatedDomain, _ made: [[String]], isLost: Bool = true, once: (SimulatedDomain) async throws -> Void,
        arrived: [String], again: (SimulatedDomain) async throws -> Void, result: [String]
    ) async throws {
        try await domain.run {
            try await make(made, in: domain)
            let gate = Gate()
            await domain.provider.holdAnswers(at: gate)
            if isLost { await domain.provider.loseAcknowledgements(1) }
            try await once(domain)
            while await domain.provider.tree() != arrived { try await Task.sleep(for: .milliseconds(1)) }
            try await again(domain)
            await domain.provider.holdAnswers(at: nil)
            gate.open()
            try await domain.expectBothSidesTheSame()
            #expect(await domain.provider.tree() == result)
        }
    }

    /// The answer to the move was the first to say so, and they were undone.
    @Test func rightsThatOthersGaveToWhatIsMovedHereStay() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await make([["dir"]], in: domain)
            let item = try #require(await domain.provider.item(at: [FileName("dir")!])).item
            await domain.provider.change(item.identifier, mode: 0o700)
            try await domain.rename(["dir"], to: ["dmoved"])
            try await domain.expectBothSidesTheSame()
            let stored = try #require(await domain.provider.item(at: [FileName("dmoved")!])).item
            #expect(stored.metadata.mode == 0o700)
            #expect(try await domain.node(at: ["dmoved"]).permissions == 0o700)
        }
    }

    /// The same where the answer is lost, and a listing tells that the move was carried out.
    @Test func rightsThatOthersGaveToWhatIsMovedHereStayWhenItsAnswerIsLost() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await make([["dir"]], in: domain)
            let item = try #require(await domain.provider.item(at: [FileName("dir")!])).item
            let gate = Gate()
            await domain.provider.holdAnswers(at: gate)
            await domain.provider.loseAcknowledgements(1)
            try await domain.rename(["dir"], to: ["dmoved"])
            while await domain.provider.tree() != ["dmoved/"] { try await Task.sleep(for: .milliseconds(1)) }
            await domain.provider.change(item.identifier, mode: 0o700)
            await domain.provider.holdAnswers(at: nil)
            gate.open()
            try await domain.expectBothSidesTheSame()
            let stored = try #require(await domain.provider.item(at: [FileName("dmoved")!])).item
            #expect(stored.metadata.mode == 0o700)
            #expect(try await domain.node(at: ["dmoved"]).permissions == 0o700)
        }
    }

    @Test func aFileThatTookTheNameOfTheFolderItWasInIsMoved() async throws {
        try await apart(
            [["d"], ["d", "a"]],
            here: { domain in
                try await domain.rename(["d", "a"], to: ["x"])
                try await domain.remove(["d"])
                try await domain.rename(["x"], to: ["d"])
            }, there: { _ in }, result: ["d=first"])
    }

    /// No path led to it any more, and its removal waited for one for ever.
    @Test func whatWasRemovedWhileItWasMadeInAFolderThatWentWhereNobodyHasLookedIsMetThere() async throws {
        let domain = try SimulatedDomain()
        try await withoutAnAnswer(
            domain, [["d"]], isLost: false, once: { domain in try await domain.write("first", to: ["d", "new"]) },
            arrived: ["d/", "d/new=first"],
            again: { domain in
                try await domain.remove(["d"])
                await domain.provider.makeFolder(["dx"])
                await domain.provider.makeFolder(["dx", "dy"])
                await domain.provider.move(from: ["d"], to: ["dx", "dy", "d"])
                try await domain.untilForgotten("d")
            }, result: ["dx/", "dx/dy/", "dx/dy/d/", "dx/dy/d/new=first"])
    }

    /// It went with the folder, as if it had always been in it; and when its own operation ended, "the name is gone here" was
    /// taken for a removal, and the provider was told to remove it.
    @Test(arguments: [true, false])
    func whatWasMovedToAFolderThatOthersRemovedIsWhereTheProviderHasIt(isBusy: Bool) async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await make([["dc"], ["dc", "x"], ["d"]], in: domain)
            let gate = Gate()
            await domain.provider.holdAnswers(at: gate)
            if isBusy {
                try await domain.write("edited", to: ["dc", "x"])
                while await domain.provider.tree().contains("dc/x=first") { try await Task.sleep(for: .milliseconds(1)) }
            } else {
                await domain.provider.fail(ProviderError(.offline, "the network is gone"))
            }
            try await domain.rename(["dc", "x"], to: ["d", "x"])
            await domain.provider.remove(at: ["d"])
            await domain.provider.fail(nil)
            // Time in which the folder could go.
            try await Task.sleep(for: .milliseconds(300))
            await domain.provider.holdAnswers(at: nil)
            gate.open()
            try await domain.expectBothSidesTheSame()
            #expect(await domain.provider.tree() == ["dc/", isBusy ? "dc/x=edited" : "dc/x=first"])
        }
    }

    /// The rest could not be fetched any more, and nobody was ever told.
    @Test func whatWasWrittenToAPartOfAFileThatOthersRemovedIsKeptWithItsHolesNamed() async throws {
        let domain = try SimulatedDomain()
        let text = String(repeating: "a", count: 3_000_000)
        try await domain.run {
            await domain.provider.write(text, to: ["file"])
            _ = try await domain.node(at: ["file"])
            let gate = Gate()
            await domain.provider.holdFetches(at: gate)
            let file = try await domain.open(["file"])
            try await domain.write("mine", to: file, at: 3_000_000)
            domain.close(file)
            await domain.provider.remove(at: ["file"])
            await domain.provider.holdFetches(at: nil)
            gate.open()
            try await domain.untilReplaced(["file"], file.node)
            let tree = try await domain.tree()
            #expect(tree.count == 1 && tree[0].contains("conflict") && tree[0].hasSuffix("mine"), "it ends with what is here")
            // A try from before may have failed too: the fetch did.
            try await domain.untilFailing(saying: "the bytes 0 to 2999999 are missing")
            // Written anew it is as any other file.
            try await domain.write("anew", to: [String(tree[0].prefix { $0 != "=" })])
            try await domain.expectBothSidesTheSame()
        }
    }

    @Test func aFolderThatTookTheNameOfTheOneThatItsFilesWereInIsMoved() async throws {
        try await apart(
            [["d"], ["d", "a"], ["dx"]],
            here: { domain in
                try await domain.rename(["d", "a"], to: ["dx", "a"])
                try await domain.remove(["d"])
                try await domain.rename(["dx"], to: ["d"])
            }, there: { _ in }, result: ["d/", "d/a=first"])
    }

    /// Its provider refused that again and again while what it waited for had its own reasons to wait, and then whoever waited
    /// for all to be sent was told that it cannot be.
    @Test func aFolderThatGoesIntoOneThatWasInItIsSentAfterThatOne() async throws {
        let made = [["d"], ["d", "dx"], ["d", "dx", "dy"], ["d", "dx", "dy", "a"]]
        let result = ["dnew/", "dnew/dx/", "dnew/dx/dy/", "dnew/dx/dy/a=first", "dnew/dx/dy/d/"]
        try await apart(
            made,
            here: { domain in
                try await domain.rename(["d"], to: ["d1"])
                try await domain.makeFolder(["dnew"])
                try await domain.rename(["d1", "dx"], to: ["dnew", "dx"])
                try await domain.rename(["d1"], to: ["dnew", "dx", "dy", "d"])
            }, there: { _ in }, result: result
        ) { #expect(await $0.moveIntoItselfCount == 0) }
    }

    /// The one that leaves takes the name that the other has, which goes into it.
    @Test func twoFoldersOfWhichOneWasInTheOtherChangePlaces() async throws {
        try await apart(
            [["d"], ["d", "dx"], ["d", "dx", "a"]],
            here: { domain in
                try await domain.rename(["d", "dx"], to: ["d1"])
                try await domain.rename(["d"], to: ["d1", "dx"])
                try await domain.rename(["d1"], to: ["d"])
            }, there: { _ in }, result: ["d/", "d/a=first", "d/dx/"]
        ) { #expect(await $0.moveIntoItselfCount == 0) }
    }

    /// The move that came to nothing was recognised in the item that stood there as before, for the file that had been made in
    /// its place meanwhile: that was sent as an edit of it, over content that nobody here had seen go.
    @Test(arguments: 0..<6)
    func aFileMadeInThePlaceOfOneThatWasOnItsWayToARemovedFolderIsNotSentOverIt(number: Int) async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await make([["d"], ["dx"], ["d", "a"]], in: domain)
            await domain.provider.fail(ProviderError(.retry, "the server is busy"))
            try await domain.rename(["d", "a"], to: ["dx", "a"])
            try await domain.untilRefused()
            await domain.provider.remove(at: ["dx"])
            try await domain.write("ours", to: ["d", "a"])
            try await Task.sleep(for: .milliseconds(300))
            await domain.provider.fail(nil)
            // It is looked at again and again before it is its turn to be sent.
            for number in 0..<40 {
                await domain.provider.write("\(number)", to: ["d", "b"])
                try await Task.sleep(for: .milliseconds(5))
            }
            try await domain.expectBothSidesTheSame()
            let tree = await domain.provider.tree()
            #expect(tree.contains("d/a=first") && tree.count { $0.hasSuffix("=ours") } == 1)
        }
    }

    @Test func whatWasPutIntoAFolderRemovedHereBringsItBack() async throws {
        try await apart(
            [["d"], ["d", "d"], ["d", "d", "a"]],
            here: { try await $0.remove(["d"]) }, there: { await $0.write("theirs", to: ["d", "d", "b"]) },
            result: ["d/", "d/d/", "d/d/b=theirs"])
    }

    @Test func whatWasPutIntoAFolderMadeAnewHereIsSeen() async throws {
        try await apart(
            [["d"], ["d", "a"]],
            here: { domain in
                try await domain.remove(["d"])
                try await domain.makeFolder(["d"])
                try await domain.write("ours", to: ["d", "c"])
            }, there: { await $0.write("theirs", to: ["d", "b"]) }, result: ["d/", "d/b=theirs", "d/c=ours"])
    }

    /// It is the removed folder again for whoever looks at the names, and the provider has it no more.
    @Test func aFolderMadeAnewBeforeItsRemovalWasAnsweredIsNotTakenAwayWithIt() async throws {
        try await withoutAnAnswer(
            try SimulatedDomain(), [["d"]], once: { try await $0.remove(["d"]) }, arrived: [],
            again: { try await $0.makeFolder(["d"]) }, result: ["d/"])
    }

    /// It was where the provider had it, again: after an exchange of names under a name that was meant for a moment.
    @Test func whatWasMovedIntoAFolderMadeAnewBeforeItsRemovalWasAnsweredStaysThere() async throws {
        try await withoutAnAnswer(
            try SimulatedDomain(), [["d0"], ["d1"], ["d1", "a"]], once: { try await $0.remove(["d0"]) },
            arrived: ["d1/", "d1/a=first"],
            again: { domain in
                try await domain.makeFolder(["d0"])
                try await domain.rename(["d1"], to: ["d0", "d1"])
            }, result: ["d0/", "d0/d1/", "d0/d1/a=first"])
    }

    /// Each waited for the other for ever.
    @Test func aFolderMadeAnewWhileItWasRemovedChangesPlacesWithTheOneItIsIn() async throws {
        try await withoutAnAnswer(
            try SimulatedDomain(), [["d"], ["d", "d1"]], isLost: false, once: { try await $0.remove(["d", "d1"]) },
            arrived: ["d/"],
            again: { domain in
                try await domain.makeFolder(["d", "d1"])
                try await domain.rename(["d", "d1"], to: ["aside"])
                try await domain.rename(["d"], to: ["aside", "d1"])
                try await domain.rename(["aside"], to: ["d"])
            }, result: ["d/", "d/d1/"])
    }

    /// At a store of places: our own content under the old name is not somebody else's edit.
    @Test func aFileSentWithoutAnAnswerAndThenMovedAndSavedAnewHasNoConflict() async throws {
        try await withoutAnAnswer(
            try SimulatedDomain(PlaceProvider()), [["a"]],
            once: { try await $0.write("second", to: ["a"]) }, arrived: ["a=second"],
            again: { domain in
                try await domain.rename(["a"], to: ["b"])
                try await domain.write("third", to: ["new"])
                try await domain.rename(["new"], to: ["b"])
            }, result: ["b=third"])
    }

    /// At a store of places: under the old name of its folder it is nowhere, and was deleted by nobody.
    @Test func aFileSavedInAFolderThatWasMovedWithoutAnAnswerHasNoConflict() async throws {
        try await withoutAnAnswer(
            try SimulatedDomain(PlaceProvider()), [["d"], ["d", "a"]],
            once: { try await $0.rename(["d"], to: ["e"]) }, arrived: ["e/", "e/a=first"],
            again: { domain in
                try await domain.write("second", to: ["e", "a"])
                try await Task.sleep(for: .milliseconds(20))
            }, result: ["e/", "e/a=second"])
    }

    /// At a store of places: it was taken for something new where the first move had brought it.
    @Test func aFolderThatWasMovedWithoutAnAnswerAndMovedOnEndsWhereItWasMovedLast() async throws {
        try await withoutAnAnswer(
            try SimulatedDomain(PlaceProvider(isPolled: true)), [["d"], ["d", "a"]],
            once: { try await $0.rename(["d"], to: ["e"]) }, arrived: ["e/", "e/a=first"],
            again: { try await $0.rename(["e"], to: ["f"]) }, result: ["f/", "f/a=first"])
    }

    /// At a store of places: what stands in the way is the replaced folder, not the one that took its name.
    @Test func aFolderThatReplacesOneThatWasMadeWithoutAnAnswerKeepsWhatIsInIt() async throws {
        try await withoutAnAnswer(
            try SimulatedDomain(PlaceProvider()), [["d"], ["d", "a"]],
            once: { try await $0.makeFolder(["e"]) }, arrived: ["d/", "d/a=first", "e/"],
            again: { domain in
                try await domain.rename(["d"], to: ["e"])
                try await Task.sleep(for: .milliseconds(20))
            }, result: ["e/", "e/a=first"])
    }

    /// It took the place of another one, and came back under its first name; moved back there, it stood beside a conflict copy
    /// of itself.
    @Test(arguments: [false, true], [false, true])
    func aFolderThatWasMadeWithoutAnAnswerAndReplacesAnotherOneIsThereOnce(places: Bool, isMovedBack: Bool) async throws {
        try await withoutAnAnswer(
            try places ? SimulatedDomain(PlaceProvider()) : SimulatedDomain(), [["d"]],
            once: { try await $0.makeFolder(["e"]) }, arrived: ["d/", "e/"],
            again: { domain in
                try await domain.rename(["e"], to: ["d"])
                if isMovedBack { try await domain.rename(["d"], to: ["e"]) }
            }, result: [isMovedBack ? "e/" : "d/"])
    }

    /// The same, but others work in it.
    @Test func aFolderThatWasMadeWithoutAnAnswerAndReplacesAnotherOneStaysWithWhatOthersPutIntoIt() async throws {
        let domain = try SimulatedDomain()
        try await withoutAnAnswer(
            domain, [["d"]], once: { try await $0.makeFolder(["e"]) }, arrived: ["d/", "e/"],
            again: { domain in
                try await domain.rename(["e"], to: ["d"])
                await domain.provider.write("theirs", to: ["e", "a"])
            }, result: ["d/", "e/", "e/a=theirs"])
    }

    /// The call did not arrive; what others made under the first name afterwards was taken for what it had made, and removed.
    @Test(arguments: [false, true])
    func whatOthersMakeWhereAFolderWasToBeMadeStays(places: Bool) async throws {
        let domain = try places ? SimulatedDomain(PlaceProvider()) : SimulatedDomain()
        try await domain.run {
            try await make([["d"]], in: domain)
            await domain.provider.fail(ProviderError(.retry, "the line broke"))
            try await domain.makeFolder(["e"])
            while !(try hasSent(domain)) { try await Task.sleep(for: .milliseconds(1)) }
            try await domain.rename(["e"], to: ["d"])
            await domain.provider.fail(ProviderError(.offline, "the network is gone"))
            // No call is under way then that would make it.
            while domain.engine.connection == .online || domain.engine.uploadingCount > 0 {
                try await Task.sleep(for: .milliseconds(1))
            }
            await domain.provider.fail(nil)
            try await domain.expectBothSidesTheSame("before the others")
            // Until the folder has been looked at.
            while try hasSent(domain) { try await Task.sleep(for: .milliseconds(10)) }
            await domain.provider.makeFolder(["e"])
            try await domain.expectBothSidesTheSame()
            #expect(await domain.provider.tree() == ["d/", "e/"])
        }
    }

    private func hasSent(_ domain: SimulatedDomain) throws -> Bool {
        try domain.index.read { transaction throws(Failure) in try transaction.hasSent() }
    }

    @Test func aFolderThatComesBackWhereAFileIsNowStandsBesideIt() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.makeFolder(["d"])
            try await domain.expectBothSidesTheSame("before")
            await domain.provider.fail(ProviderError(.offline, "the network is gone"))
            try await domain.remove(["d"])
            try await domain.write("ours", to: ["d"])
            await domain.provider.write("theirs", to: ["d", "b"])
            await domain.provider.fail(nil)
            try await domain.expectBothSidesTheSame()
            let tree = await domain.provider.tree()
            #expect(tree.contains("d=ours") && tree.contains { $0.hasPrefix("d (conflict, ") && $0.hasSuffix("/b=theirs") })
        }
    }

    @Test func foldersMovedIntoEachOtherOnTwoSidesEndAsTheProviderHasThem() async throws {
        try await apart(
            [["d0"], ["d1"], ["d0", "a"], ["d1", "b"]],
            here: { try await $0.rename(["d0"], to: ["d1", "d0"]) }, there: { await $0.move(from: ["d1"], to: ["d0", "d1"]) },
            result: ["d0/", "d0/a=first", "d0/d1/", "d0/d1/b=first"])
    }

    @Test func whatWasMovedIntoAFolderThatOthersRemoveShowsWhereItWas() async throws {
        try await apart(
            [["d0"], ["d1"], ["d1", "d"], ["d1", "d", "a"]],
            here: { try await $0.rename(["d1", "d"], to: ["d0", "d"]) }, there: { await $0.remove(at: ["d0"]) },
            result: ["d1/", "d1/d/", "d1/d/a=first"])
    }

    @Test func whatOthersMoveBeforeTheyRemoveItsFolderGivesItsNameBack() async throws {
        try await apart(
            [["d0"], ["d0", "a"], ["d1"]],
            here: { domain in
                try await domain.remove(["d0"])
                try await domain.write("ours", to: ["d0"])
            },
            there: { provider in
                await provider.makeFolder(["d1", "dnew"])
                await provider.move(from: ["d0", "a"], to: ["d1", "dnew", "a"])
                await provider.remove(at: ["d0"])
            }, result: ["d0=ours", "d1/", "d1/dnew/"])
    }

    /// Runs `again` while the provider has what `once` wrote and has not answered yet.
    private func duringAnUpload(
        once: (SimulatedDomain) async throws -> Void, again: (SimulatedDomain) async throws -> Void
    ) async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.write("first", to: ["a"])
            try await domain.expectBothSidesTheSame("before")
            let gate = Gate()
            await domain.provider.holdAnswers(at: gate)
            try await once(domain)
            while await !domain.provider.tree().contains("a=second") { try await Task.sleep(for: .milliseconds(5)) }
            try await again(domain)
            await domain.provider.holdAnswers(at: nil)
            gate.open()
            try await domain.expectBothSidesTheSame()
            #expect(await domain.provider.tree() == ["a=third"])
        }
    }

    private func save(_ text: String, in domain: SimulatedDomain) async throws {
        try await domain.write(text, to: ["a.tmp"])
        try await domain.rename(["a.tmp"], to: ["a"])
    }

    @Test(.timeLimit(.minutes(2))) func aSaveWhileTheOneBeforeIsBeingSentIsSentToo() async throws {
        try await duringAnUpload(once: { try await save("second", in: $0) }, again: { try await save("third", in: $0) })
    }

    @Test(.timeLimit(.minutes(2))) func aFileMadeAnewWhileTheOneBeforeIsBeingSentIsSentToo() async throws {
        try await duringAnUpload(
            once: { try await $0.write("second", to: ["a"]) },
            again: { domain in
                try await domain.remove(["a"])
                try await domain.write("third", to: ["a"])
            })
    }

    /// Both nodes counted their edits from what was agreed on, so the first one's answer was taken for both.
    @Test(.timeLimit(.minutes(2))) func aSaveAfterARemovalWhileTheOneBeforeIsBeingSentIsSentToo() async throws {
        try await duringAnUpload(
            once: { try await save("second", in: $0) },
            again: { domain in
                try await domain.remove(["a"])
                try await save("third", in: domain)
            })
    }

    /// No path leads there: work on them waited for ever.
    @Test(arguments: [false, true]) func foldersThatAreKnownInEachOtherAreMadeAnew(places: Bool) async throws {
        let domain = try SimulatedDomain(places ? PlaceProvider(isPolled: true) : nil)
        try await domain.run {
            try await make([["d1"], ["d1", "a"], ["d2"], ["d2", "b"]], in: domain)
            await domain.provider.remove(at: ["d1"])
            await domain.provider.remove(at: ["d2"])
            try domain.makeCircle(["d1", "d2"])
            try await domain.write("second", to: ["d1", "a"])
            try await domain.write("second", to: ["d2", "b"])
            try await domain.expectBothSidesTheSame()
            #expect(await domain.provider.tree() == ["d1/", "d1/a=second", "d2/", "d2/b=second"])
        }
    }

    @Test func aFolderIsNotMovedIntoItself() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.makeFolder(["d"])
            try await domain.makeFolder(["d", "e"])
            await #expect(throws: Failure.self) { try await domain.rename(["d"], to: ["d", "e", "d"]) }
            try await domain.expectBothSidesTheSame()
        }
    }
}
