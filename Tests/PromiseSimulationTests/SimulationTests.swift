import Foundation
import Testing

/// The whole engine from a seed: `simulate` runs schedules, each in one thread and in virtual time.
@Suite(.serialized) struct SimulationTests {
    /// Runs the program that is beside the tests in the build folder, and waits on a thread of its own: one
    /// of Swift's, of which there are as many as processors, would be missed by every other test.
    private func simulate(_ arguments: [String]) async throws -> (status: Int32, output: String) {
        try await withCheckedThrowingContinuation { continuation in
            Thread { continuation.resume(with: Result { try Self.run(arguments) }) }.start()
        }
    }

    private static func run(_ arguments: [String]) throws -> (status: Int32, output: String) {
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let build =
            own.contains("/.build/") ? (own as NSString).deletingLastPathComponent : ".build/release"
        let process = Process()
        process.executableURL = URL(fileURLWithPath: build + "/simulate")
        process.arguments = arguments
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: output, as: UTF8.self))
    }

    @Test func theSameSeedDoesTheSameByteForByte() async throws {
        // The last ones did not: a thread removed content, another looked at mappings, and what was written
        // within one tick of the kernel's clock was seen or not.
        for seed in [1, 2, 3, 5, 4, 186, 349, 369] {
            let first = try await simulate(["--seed", "\(seed)", "--trace"]).output.split(separator: "\n")
            let again = try await simulate(["--seed", "\(seed)", "--trace"]).output.split(separator: "\n")
            // The last line says how long it took.
            #expect(first.count > 3 && first.dropLast() == again.dropLast())
        }
    }

    @Test func aPowerCutDoesTheSameByteForByte() async throws {
        // Of the last one three daemons are killed while they recover, at a call that they reach.
        for seed in [17, 25, 5033, 10002] {
            let arguments = ["--power-cuts", "--seed", "\(seed)", "--trace"]
            let first = try await simulate(arguments).output.split(separator: "\n")
            let again = try await simulate(arguments).output.split(separator: "\n")
            #expect(first.count > 3 && first.dropLast() == again.dropLast())
        }
    }

    @Test func aSituationDoesTheSameByteForByte() async throws {
        for seed in 1...6 {
            let arguments = ["--situations", "--seed", "\(seed)", "--trace"]
            let first = try await simulate(arguments).output.split(separator: "\n")
            let again = try await simulate(arguments).output.split(separator: "\n")
            #expect(first.count > 3 && first.dropLast() == again.dropLast())
        }
    }

    /// What hardly ever comes together by chance, in stories of a few steps whose end is certain.
    @Test(.timeLimit(.minutes(10))) func situationsEndAsTheyMust() async throws {
        let run = try await simulate(["--situations", "--seed", "10000", "--schedules", "100"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A folder's move whose answer was lost went out again, after others had made a folder where it had been: theirs was moved,
    /// and got a conflict's name.
    @Test(.timeLimit(.minutes(5))) func aMoveThatIsSentAgainTakesNothingOfOthers() async throws {
        let run = try await simulate(["--situation", "movedAgain", "--seed", "1", "--schedules", "40"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A file that was made without an answer, and found to be there by its content, was renamed. When another machine gave it
    /// its first name back it was taken for made by that call and removed here: it went everywhere.
    @Test(.timeLimit(.minutes(5))) func whatOthersMoveBackIsNotTakenForMadeAndRemoved() async throws {
        let run = try await simulate(["--situation", "movedBack,conflictMovedBack", "--seed", "1", "--schedules", "60"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// Of the schedules that once found something: a temporary name that another machine showed, a removal
    /// that nobody had asked for, an exchange that was undone, an answer that was lost at a store without
    /// times; content that was taken for sent as its node counted as many edits as another one, contents
    /// that were sent and not known again, a removal that was forgotten, links that were shown as files;
    /// a folder that its own child made go, which stopped everything, and a placeholder taken for edited; a
    /// move that was undone, as the one before it had been carried out without an answer; a file saved anew after
    /// a removal, whose node counted as many edits as the one before; a file that was renamed before the lost
    /// answer that it was made, and stayed under its first name; a folder that was put aside again and again, so
    /// that what waited to follow it never found it.
    @Test(arguments: [
        10_004, 1380, 1501, 2059, 2242, 2485, 2753, 4126, 50843, 51082, 100351, 100671, 200673, 300246, 301952, 400064,
        600312, 601223, 601431, 701560, 800546, 801543, 3_001_316, 3_005_115,
        3_002_484, 3_012_361, 3_012_916, 3_905_494_432_671_067_886,
    ])
    func whatWasFoundOnceIsNotFoundAgain(seed: Int) async throws {
        let run = try await simulate(["--seed", "\(seed)"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// As these were found before daemons were killed there.
    private var noKillInRecovery: [String] { ["--less", "recoverykills,recoverykills"] }

    /// Of an upload that had arrived the content was lost here, and an empty file took its place at the store; content that was
    /// fetched and edited reached the disk in part, which was uploaded; content that was recognised as ours at the store was
    /// shown by the version before.
    @Test(.timeLimit(.minutes(5)), arguments: [17, 25, 57, 5033, 5135])
    func whatAPowerCutHasTornReplacesNothingAtTheStore(seed: Int) async throws {
        let run = try await simulate(["--power-cuts"] + noKillInRecovery + ["--seed", "\(seed)"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// The power failed again right after the start, and what had been in doubt was taken for certain.
    @Test(.timeLimit(.minutes(10))) func whatWasInDoubtStaysSoWhenThePowerFailsAgain() async throws {
        let run = try await simulate(["--power-cuts", "--swarm"] + noKillInRecovery + ["--seed", "300097"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A save had been answered and sent; the row of the file was lost with those that SQLite had to commit by itself, as the
    /// journal could not be written to, and rows of later came back beside new ones: the file at the store was taken for removed.
    @Test(.timeLimit(.minutes(10))) func whatAPowerCutLeftBehindAGapOfTheJournalNeverHappens() async throws {
        let run = try await simulate(["--power-cuts", "--swarm", "--seed", "2000423"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// The first listing of a folder was cut off, and what was written in it met a name of others that nobody here
    /// asked for.
    @Test(.timeLimit(.minutes(10))) func aNameOfOthersIsMetWhereTheFirstListingWasCutOff() async throws {
        let run = try await simulate(["--swarm", "--seed", "20000500"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A tree that was removed here, while another machine moved it, came back where that one had
    /// moved it to.
    @Test(.timeLimit(.minutes(5))) func aTreeThatWasRemovedGoesWhereOthersMovedIt() async throws {
        let run = try await simulate(
            ["--situation", "treeMeetsMove", "--seed", "1", "--schedules", "16"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// An empty file whose answer was lost stayed under its first name, beside what it became.
    @Test(.timeLimit(.minutes(5))) func anEmptyFileIsNotLeftUnderItsFirstName() async throws {
        let arguments = ["--situation", "emptyMade", "--seed", "1", "--schedules", "6"]
        let run = try await simulate(arguments)
        #expect(run.status == 0, "\(run.output)")
    }

    /// Two fetched files exchanged their names, the store was told of one of them, and the power failed.
    @Test(.timeLimit(.minutes(5))) func theOnlyCopyOfAContentIsOnTheDiskBeforeTheStoreLosesIt() async throws {
        let run = try await simulate(["--situation", "exchangeBeforePowerCut", "--seed", "1", "--schedules", "40"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// Content that had not reached the disk was trusted, as the daemon before had ended in order.
    @Test(.timeLimit(.minutes(5))) func whatIsTrustedAfterAnOrderlyEndIsOnTheDisk() async throws {
        let run = try await simulate(["--situation", "endBeforePowerCut", "--seed", "1", "--schedules", "40"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A link that a listing had shown as a file, and that was moved here then, stayed a file.
    @Test(.timeLimit(.minutes(5))) func aLinkThatWasShownAsAFileIsOneInTheEnd() async throws {
        let run = try await simulate(["--situation", "linkShownAsFile", "--store", "4", "--seed", "1", "--schedules", "20"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A folder was moved here into another one, in the place of which it was put by somebody at the store: nothing was followed
    /// or sent any more.
    @Test(.timeLimit(.minutes(10)), arguments: [9_490_190]) func whatStrangersDoAtTheStoreIsFollowed(seed: Int) async throws {
        let run = try await simulate(["--strangers", "--swarm", "--seed", "\(seed)"])
        #expect(run.status == 0, "\(run.output)")
    }

    @Test(.timeLimit(.minutes(10))) func strangersAtTheStoreLoseNothing() async throws {
        for store in ["0", "3", "8", "9"] {
            let run = try await simulate(["--strangers", "--store", store, "--seed", "10000", "--schedules", "10"])
            #expect(run.status == 0, "\(run.output)")
        }
    }

    /// One of two items of a file with two names was given another time or mode at the store, and the other one never.
    @Test(.timeLimit(.minutes(10)), arguments: [61_100_179, 70_100_690])
    func whatStrangersSetOnOneNameReachesTheOtherOne(seed: Int) async throws {
        let run = try await simulate(["--strangers", "--seed", "\(seed)"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A folder that was moved at the store into one that has taken its place came with that one, and stopped everything.
    @Test(.timeLimit(.minutes(10))) func whatMovesIntoWhatTookItsPlaceIsFollowed() async throws {
        let run = try await simulate(["--large-files", "--strangers", "--swarm", "--seed", "420014561"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A file that another machine had moved to a name that it once had here was taken for made by a late call, and removed: its
    /// text went everywhere.
    @Test(.timeLimit(.minutes(10))) func whatOthersMoveToAFormerNameIsNotTakenForMadeAndRemoved() async throws {
        let run = try await simulate(["--swarm", "--seed", "400015770"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A folder of others stood at the store where a file was here, and its names were put into the file.
    @Test(.timeLimit(.minutes(10))) func nothingIsPutIntoAFile() async throws {
        let run = try await simulate(["--large-files", "--strangers", "--swarm", "--seed", "440002590"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// Others edited one of two items that were one file here: what was missing of it was taken for gone, and the
    /// other one had it.
    @Test(.timeLimit(.minutes(10))) func whatIsMissingOfAFileComesFromItsOtherName() async throws {
        let run = try await simulate(["--large-files", "--strangers", "--swarm", "--seed", "970003366"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A file that others had put where a move without an answer led was taken for the moved one, of its size and time, and
    /// stayed here with the text of that.
    @Test(.timeLimit(.minutes(10))) func whatOthersPutWhereAMoveLedIsRead() async throws {
        let run = try await simulate(["--swarm", "--seed", "800002646"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A text was sent under one name without an answer, and after an exchange under another. Others moved it from there to the
    /// first one, where it was taken for an earlier state of what was there by then, and written over.
    @Test(.timeLimit(.minutes(10)), arguments: [[], ["--less", "actions"]])
    func whatOthersMoveToWhereItWasSentBeforeIsTheirs(less: [String]) async throws {
        let run = try await simulate(["--swarm", "--seed", "800010092"] + less)
        #expect(run.status == 0, "\(run.output)")
    }

    /// The first listing of a folder was begun before a save in it was sent, and came after that: what it showed was believed,
    /// and the next save was in conflict with the one before.
    @Test(.timeLimit(.minutes(10))) func aFirstListingThatComesLateIsNotBelieved() async throws {
        let run = try await simulate(["--swarm", "--seed", "3508000353"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A move did not arrive, and others put that very file where it was to lead. There an edited file was known, which was
    /// taken for the moved one, and written over what had been moved without a conflict.
    @Test(.timeLimit(.minutes(10)), arguments: [[], ["--less", "actions"]])
    func whatOthersMoveToWhereOursWasToGoIsNotWhatIsKnownThere(less: [String]) async throws {
        let run = try await simulate(["--swarm", "--seed", "7000005102"] + less)
        #expect(run.status == 0, "\(run.output)")
    }

    /// A save and move arrived without an answer. The file was moved on, which was refused again and again, as its version was
    /// another one; by then nothing was known of the first move any more, which was taken for somebody else's.
    @Test(.timeLimit(.minutes(10)), arguments: [[], ["--less", "actions"]])
    func aMoveThatArrivedIsOursAlsoAfterOthersWereRefused(less: [String]) async throws {
        let run = try await simulate(["--swarm", "--seed", "10200006318"] + less)
        #expect(run.status == 0, "\(run.output)")
    }

    /// Others moved a new file before the answer came that it had been made, and a listing showed it there: the answer could
    /// not be stored any more, and the machine tried that for ever.
    @Test(.timeLimit(.minutes(10))) func whatOthersMoveBeforeItsAnswerComesStopsNothing() async throws {
        let run = try await simulate(["--large-files", "--strangers", "--swarm", "--seed", "10400000797"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// As in `whatOthersMoveToWhereItWasSentBeforeIsTheirs`; what had been sent there was to be moved on.
    @Test(.timeLimit(.minutes(10))) func whatOthersMoveToWhereItWasToBeMovedFromIsTheirs() async throws {
        let run = try await simulate(["--swarm", "--seed", "11200006622"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A save by rename arrived without an answer, and so did a move after it: the file counted as of the version of its
    /// temporary name, and was in conflict with itself.
    @Test(.timeLimit(.minutes(10))) func aSaveAndAMoveWithoutAnswersAreNoConflict() async throws {
        let run = try await simulate(["--swarm", "--seed", "12200024667"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A file was moved without an answer, removed there and made anew under its first name. The answer to that showed it where
    /// the move had led, which was taken for a move of others.
    @Test(.timeLimit(.minutes(10))) func anAnswerThatShowsOurOwnMoveIsNoMoveOfOthers() async throws {
        let run = try await simulate(["--seed", "24000021035"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A move was refused unheard, and another machine made the same move. What was there counted as another item, of no use to
    /// anybody, and was removed.
    @Test(.timeLimit(.minutes(10))) func whatAnotherMachineMovedToWhereOursWasToLeadIsNotRemoved() async throws {
        let run = try await simulate(["--strangers", "--swarm", "--seed", "24600007807"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A move was answered by nobody, as its machine died, and recognised where it led. A listing of where it had come
    /// from, which had begun before, moved it back, and what had been made there meanwhile was in conflict with it.
    @Test(.timeLimit(.minutes(10))) func aListingFromBeforeAMoveWasRecognisedDoesNotUndoIt() async throws {
        let run = try await simulate(["--seed", "25000006486"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A conflict version has no more rights than its document, and neither has another name of it, whose item was not told.
    @Test(.timeLimit(.minutes(10))) func theSecondNameOfAConflictVersionIsToldOfItsRights() async throws {
        let run = try await simulate(["--swarm", "--strangers", "--seed", "22600000246"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A folder arrived without an answer, took the place of another one after a kill and was moved back: it stood beside a
    /// conflict copy of itself.
    @Test(.timeLimit(.minutes(10))) func aFolderThatTookThePlaceOfAnotherIsNoConflictWithItself() async throws {
        let run = try await simulate(["--seed", "12000018534"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A file was moved without an answer, removed there, and made anew under its first name. What was sent to that name hid
    /// that the move might have arrived: the removed file came back, with its folder.
    @Test(.timeLimit(.minutes(10))) func aFileThatMayHaveBeenMovedIsLookedForThere() async throws {
        let run = try await simulate(["--swarm", "--seed", "12200016717"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A folder was removed and made anew. A file that was made in the new one, and renamed, counted as lost with the one before.
    @Test(.timeLimit(.minutes(10))) func whatIsInAFolderThatIsMadeAnewIsNotLostWithTheOneBefore() async throws {
        let run = try await simulate(["--store", "4", "--swarm", "--seed", "11700000427"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A link that was changed and moved, without an answer, was listed as a file by a storage that does not tell of links, which
    /// was made here; the link was in conflict with itself.
    @Test(.timeLimit(.minutes(10))) func aLinkThatWasMovedIsNotTakenForAFileOfOthers() async throws {
        let run = try await simulate(["--swarm", "--seed", "10200024049"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A move had come to its end without an answer; its file was asked for there, and taken for another one of its size and
    /// time that was being moved there at that moment: it was removed here, and the other one stood in conflict with it.
    @Test(.timeLimit(.minutes(10))) func whatIsFoundWhereTwoWereSentIsTheOneThatItsVersionSays() async throws {
        let run = try await simulate(["--swarm", "--seed", "2502000269"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// What was here again after two exchanges was taken for what the store has, and went for the last time.
    @Test(.timeLimit(.minutes(5))) func anExchangeThatIsTakenBackByHalfLosesNothing() async throws {
        let run = try await simulate(["--situation", "exchangedBack", "--seed", "1", "--schedules", "12"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// The removal of a file was on its way when others edited it, and took what they wrote with it.
    @Test(.timeLimit(.minutes(5))) func aRemovalThatArrivesLateTakesNoEditOfOthers() async throws {
        let run = try await simulate(["--situation", "removalMeetsEdit", "--seed", "1", "--schedules", "12"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A removal was carried out and its answer lost; told of once more, it took what others had moved there since.
    @Test(.timeLimit(.minutes(5)), arguments: ["3", "4", "5", "7"])
    func aRemovalIsNotToldOnceMoreOfWhatOthersMovedThere(store: String) async throws {
        let run = try await simulate(
            ["--situation", "removalMeetsMove,removalMeetsCopy", "--store", store, "--seed", "1", "--schedules", "12"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// A machine that had died before its move was answered told of it once more, and undid what others had moved since.
    @Test(.timeLimit(.minutes(5))) func whatOthersMovedOnIsNotMovedBackAfterAStart() async throws {
        let run = try await simulate(["--situation", "movedOn", "--seed", "1", "--schedules", "12"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// Others replaced a file in the middle of a fetch, and what had come of both versions was kept, and sent, as one.
    @Test(.timeLimit(.minutes(5))) func piecesOfTwoVersionsAreNotOneFile() async throws {
        let run = try await simulate(["--situation", "editedInPieces", "--seed", "1", "--schedules", "12"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// Others overwrote a file in place in the middle of a fetch, and what had come of theirs when a program wrote to
    /// it once more was kept as pieces of ours.
    @Test(.timeLimit(.minutes(5))) func bytesOfOthersAreNoPiecesOfOurs() async throws {
        let run = try await simulate(["--situation", "piecesStored", "--seed", "1", "--schedules", "12"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// Fetches that break off, reads and writes of parts, and what others replace before all of it has come.
    @Test(.timeLimit(.minutes(10))) func filesThatComeInPiecesLoseNothing() async throws {
        let run = try await simulate(
            ["--large-files", "--strangers", "--swarm", "--seed", "300000000", "--schedules", "40"])
        #expect(run.status == 0, "\(run.output)")
    }

    @Test(.timeLimit(.minutes(10))) func powerCutsLoseNothingThatWasSynchronizedOrSent() async throws {
        let run = try await simulate(["--power-cuts", "--swarm", "--seed", "10000", "--schedules", "40"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// Random calls on one machine, each compared with what a tree in memory does. A file of two names lost
    /// its content with one of them, an item that had been moved without an answer was moved back, or was
    /// made again beside itself, and the mark of one move was taken away by another one.
    @Test(.timeLimit(.minutes(10)), arguments: [1599, 1847, 1719, 1667, 2075, 2203])
    func aFileSystemDoesWhatATreeInMemoryDoes(seed: Int) async throws {
        let run = try await simulate(["--model", "100", "--seed", "\(seed)"])
        #expect(run.status == 0, "\(run.output)")
    }

    @Test(.timeLimit(.minutes(10))) func manyCallsDoWhatATreeInMemoryDoes() async throws {
        let run = try await simulate(["--model", "100", "--seed", "1000", "--schedules", "70"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// Each labelled call of the disk fails in turn in each call. A truncation that could not look afterwards
    /// had cut the file and said that it had not.
    @Test(.timeLimit(.minutes(10))) func aCallThatFailsLeavesEverythingAsItWas() async throws {
        let run = try await simulate(["--model", "40", "--faults", "--seed", "1", "--schedules", "6"])
        #expect(run.status == 0, "\(run.output)")
    }

    /// Of seeds that nobody has tried before; each failing one is printed with the command that shows it.
    @Test(
        .timeLimit(.minutes(10)),
        .enabled(if: ProcessInfo.processInfo.environment["PROMISEFS_FRESH_SCHEDULES"] != nil, "asked for only"))
    func freshSeedsEndWithNothingLost() async throws {
        let count = ProcessInfo.processInfo.environment["PROMISEFS_FRESH_SCHEDULES"] ?? "150"
        let run = try await simulate(["--seed", "\(UInt64.random(in: 10_000_000..<1 << 62))", "--schedules", count])
        #expect(run.status == 0, "\(run.output)")
    }

    /// What others write between a look and a change is overwritten there. An item was tried for ever: what it
    /// stood for had been overwritten by content of ours whose answer was lost.
    @Test(.timeLimit(.minutes(10)), arguments: ["6", "7"]) func storesWithoutConditionsComeToRest(store: String) async throws {
        let run = try await simulate(["--store", store, "--seed", "1", "--schedules", "20"])
        #expect(run.status == 0, "\(run.output)")
    }

    @Test(.timeLimit(.minutes(10))) func manySchedulesEndWithNothingLost() async throws {
        let count = ProcessInfo.processInfo.environment["PROMISEFS_SCHEDULES"] ?? "200"
        let run = try await simulate(["--seed", "10000", "--schedules", count])
        #expect(run.status == 0, "\(run.output)")
    }
}
