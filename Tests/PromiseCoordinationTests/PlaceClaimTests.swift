import PromiseCoordination
import PromiseCore
import Testing

/// Claims on what is not there yet, and preparations.
@Suite struct PlaceClaimTests {
    private var table = ClaimTable(answerLimit: .seconds(5))
    private let mine = Purpose(rawValue: "mine")

    private func vacancy(_ name: String, in folder: UInt64 = 2) -> NodeID {
        .vacancy(FileName(name)!, in: NodeID(folder))
    }

    /// Folder 2 of the root has it.
    private func item(_ node: UInt64, _ name: String, _ options: WritingOptions = []) -> Intent {
        Intent(node: NodeID(node), folders: [NodeID(2), .root], access: .write(options), place: vacancy(name))
    }

    private func nothing(_ name: String) -> Intent {
        Intent(node: vacancy(name), folders: [NodeID(2), .root], access: .write([]), place: vacancy(name))
    }

    @Test func twoWhoMeanToMakeOneDocumentTakeTurns() {
        var table = table
        let first = table.claim([nothing("new")])
        let second = table.claim([nothing("new")])
        let beside = table.claim([nothing("other")])
        let folder = table.claim([Intent(node: NodeID(2), folders: [.root], access: .write([]))])
        #expect(table.takeActions() == [.granted(first), .granted(beside)])
        table.release(first)
        table.release(beside)
        #expect(table.takeActions() == [.granted(second)])
        table.release(second)
        #expect(table.takeActions() == [.granted(folder)])
    }

    /// Nobody has told of it yet, and then somebody does.
    @Test func whatIsMadeAtAClaimedPlaceIsClaimed() {
        for isTold in [false, true] {
            var table = table
            let maker = table.claim([nothing("new")])
            if isTold { table.arrived(NodeID(9), at: vacancy("new"), in: [NodeID(2), .root]) }
            #expect(table.nodes(of: maker) == [isTold ? NodeID(9) : vacancy("new")])
            let second = table.claim([item(9, "new")])
            #expect(table.takeActions() == [.granted(maker)], "\(isTold)")
            #expect(table.isGranted(maker, toWrite: [item(9, "new")]))
            table.release(maker)
            #expect(table.takeActions() == [.granted(second)])
        }
    }

    @Test func whatIsMadeAtAClaimedPlaceIsClaimedWhereverItGoes() {
        var table = table
        let maker = table.claim([nothing("new")])
        table.arrived(NodeID(9), at: vacancy("new"), in: [NodeID(2), .root])
        table.moved(MovedName(NodeID(9), in: [.root]))
        let again = table.claim([nothing("new")])
        let there = table.claim([Intent(node: NodeID(9), folders: [.root], access: .read([]))])
        #expect(table.takeActions() == [.granted(maker), .granted(again)])
        table.release(maker)
        #expect(table.takeActions() == [.granted(there)])
    }

    /// It was granted the place and held what had been made there for a moment: a third one was let
    /// in beside it.
    @Test func whoWaitsForAPlaceHasItWhenWhatWasMadeThereHasGone() {
        var table = table
        let maker = table.claim([nothing("new")])
        let waiting = table.claim([nothing("new")])
        table.arrived(NodeID(9), at: vacancy("new"), in: [NodeID(2), .root])
        let place = OldPlace(parent: NodeID(2), name: FileName("new")!)
        table.moved(MovedName(NodeID(9), in: [NodeID(3), .root]), from: place)
        table.release(maker)
        #expect(table.takeActions() == [.granted(maker), .granted(waiting)])
        #expect(table.nodes(of: waiting) == [vacancy("new")])
        let third = table.claim([nothing("new")])
        #expect(table.takeActions().isEmpty)
        table.release(waiting)
        #expect(table.takeActions() == [.granted(third)])
    }

    /// Who wrote the folder of the place was let in.
    @Test func whoReplacesHasTheFolderOfThePlaceToo() {
        var table = table
        let replacing = table.claim([item(4, "a", .forReplacing)])
        let place = OldPlace(parent: NodeID(2), name: FileName("a")!)
        table.moved(MovedName(NodeID(4), in: [NodeID(3), .root]), from: place)
        let folder = table.claim([Intent(node: NodeID(2), folders: [.root], access: .write([]))])
        let there = table.claim([Intent(node: NodeID(4), folders: [NodeID(3), .root], access: .read([]))])
        #expect(table.takeActions() == [.granted(replacing)])
        table.release(replacing)
        #expect(table.takeActions() == [.granted(folder), .granted(there)])
    }

    @Test func whoReplacesHasThePlaceWhenTheItemHasMovedAway() {
        var table = table
        let replacing = table.claim([item(4, "a", .forReplacing)])
        let moving = table.claim([item(5, "b", .forMoving)])
        table.moved(MovedName(NodeID(4), in: [.root]))
        table.moved(MovedName(NodeID(5), in: [.root]))
        let taken = table.claim([nothing("a")])
        let free = table.claim([nothing("b")])
        #expect(table.takeActions() == [.granted(replacing), .granted(moving), .granted(free)])
        table.release(replacing)
        #expect(table.takeActions() == [.granted(taken)])
    }

    @Test func aPlaceIsTakenWhileTheClaimOfWhatWasDeletedThereLasts() {
        var table = table
        let deleting = table.claim([item(4, "a", .forDeleting)])
        let making = table.claim([nothing("a")])
        #expect(table.takeActions() == [.granted(deleting)])
        table.release(deleting)
        #expect(table.takeActions() == [.granted(making)])
    }

    // MARK: - Preparations

    private func answerAll(_ table: inout ClaimTable) -> (asked: [Question], rest: [ClaimTable.Action]) {
        var asked: [Question] = []
        var rest: [ClaimTable.Action] = []
        while case let actions = table.takeActions(), !actions.isEmpty {
            for action in actions {
                if case .ask(_, let question, let number, _) = action {
                    asked.append(question)
                    table.answered(number)
                } else {
                    rest.append(action)
                }
            }
        }
        return (asked, rest)
    }

    @Test func whatWasPreparedIsAskedOnceAndGivenBackAtTheEnd() {
        var table = table
        let presenter = table.addPresenter(of: NodeID(4), in: [NodeID(2), .root])
        let items = [item(4, "a", .forMerging), item(5, "b")]
        let batch = table.claim(items, purpose: mine, within: [], isPreparation: true)
        #expect(answerAll(&table) == ([.relinquishToWriter, .saveChanges], [.granted(batch)]))
        for access in [Access.write([]), .read([]), .write(.forMerging)] {
            var intent = items[0]
            intent.access = access
            let nested = table.claim([intent], purpose: mine, within: [batch])
            #expect(answerAll(&table) == ([], [.granted(nested)]), "\(access)")
            table.release(nested)
            #expect(table.takeActions().isEmpty)
        }
        let deleting = table.claim([item(4, "a", .forDeleting)], purpose: mine, within: [batch])
        #expect(answerAll(&table) == ([.accommodateDeletion], [.granted(deleting)]), "what was not asked yet is")
        table.release(deleting)
        table.release(batch)
        #expect(table.takeActions() == [.tell(presenter, .reacquire)])
    }

    @Test func aPreparationKeepsNobodyOut() {
        var table = table
        let batch = table.claim([item(4, "a")], isPreparation: true)
        let other = table.claim([item(4, "a")])
        let nested = table.claim([item(4, "a")], purpose: mine, within: [batch])
        #expect(table.takeActions() == [.granted(batch), .granted(other)])
        table.release(other)
        #expect(table.takeActions() == [.granted(nested)])
    }

    /// It heard nothing, and let nobody edit for ever.
    @Test func whoLetsGoForAClaimThatIsGivenUpHearsWhenThatIsOver() {
        var table = table
        let presenter = table.addPresenter(of: NodeID(4), in: [NodeID(2), .root])
        let first = table.claim([item(4, "a")])
        guard case .ask(_, _, let number, _)? = table.takeActions().first else { return #expect(Bool(false)) }
        table.release(first)
        #expect(table.takeActions() == [.tell(presenter, .reacquire)])
        table.answered(number)
        #expect(table.takeActions().isEmpty)
    }

    /// It took the folder up again while another one was inside.
    @Test func whoLetGoForTwoHearsWhenTheLastOneHasEnded() {
        var table = table
        let presenter = table.addPresenter(of: NodeID(2), in: [.root])
        table.release(table.claim([Intent(node: NodeID(3), folders: [.root], access: .write([]))]))
        let claims = ["a", "b"].map { name in
            table.claim([Intent(node: NodeID(2), folders: [.root], access: .read(.withoutChanges), place: vacancy(name))])
        }
        _ = answerAll(&table)
        table.release(claims[0])
        #expect(table.takeActions().isEmpty)
        table.release(claims[1])
        #expect(table.takeActions() == [.tell(presenter, .reacquire)])
    }
}

/// A file with two names: 4 is `a` in folder 2, and `b` in folder 6.
@Suite struct SeveralNamesClaimTests {
    private let above: [NodeID] = [NodeID(2), .root]
    private let beside: [NodeID] = [NodeID(6), .root]

    private func names(_ node: UInt64 = 4) -> [Intent] {
        [above, beside].map { Intent(node: NodeID(node), folders: $0, access: .write([])) }
    }

    private func folder(_ node: UInt64) -> Intent { Intent(node: NodeID(node), folders: [.root], access: .write([])) }

    @Test func aClaimByOneNameIsInTheWayOfTheFoldersOfBoth() {
        for number in [UInt64(2), 6] {
            var table = ClaimTable(answerLimit: .seconds(5))
            let claim = table.claim(names())
            let other = table.claim([folder(number)])
            #expect(table.takeActions() == [.granted(claim)])
            table.release(claim)
            #expect(table.takeActions() == [.granted(other)])
        }
    }

    /// As the index says it after a rename of one of the file's names.
    private func moved(
        from parent: UInt64, _ name: String, to folders: [NodeID], beside other: [NodeID], in table: inout ClaimTable
    ) {
        let now = MovedName(NodeID(4), in: folders, names: [other, folders])
        table.moved(now, from: OldPlace(parent: NodeID(parent), name: FileName(name)!))
    }

    @Test func aNameThatMovesTakesTheOtherOneNowhere() {
        var table = ClaimTable(answerLimit: .seconds(5))
        let claim = table.claim(names())
        // What is told a second time moves nothing more.
        for _ in 0..<2 { moved(from: 6, "b", to: [NodeID(7), .root], beside: [NodeID(2), .root], in: &table) }
        let (left, one, other) = (table.claim([folder(6)]), table.claim([folder(2)]), table.claim([folder(7)]))
        #expect(table.takeActions() == [.granted(claim), .granted(left)])
        table.release(claim)
        #expect(table.takeActions() == [.granted(one), .granted(other)])
    }

    @Test func ofTwoNamesInOneFolderOneStays() {
        var table = ClaimTable(answerLimit: .seconds(5))
        let claim = table.claim([names()[0], names()[0]])
        for _ in 0..<2 { moved(from: 2, "b", to: beside, beside: [NodeID(2), .root], in: &table) }
        _ = table.claim([folder(2)])
        _ = table.claim([folder(6)])
        #expect(table.takeActions() == [.granted(claim)])
    }

    /// It was held where the other name had been, and let go of where that is.
    @Test func aPlaceIsThatOfTheNameThatStays() {
        var table = ClaimTable(answerLimit: .seconds(5))
        func place(_ name: String) -> NodeID { .vacancy(FileName(name)!, in: NodeID(2)) }
        func name(_ text: String) -> Intent {
            Intent(node: NodeID(4), folders: [NodeID(2), .root], access: .write([]), place: place(text))
        }
        func new(_ text: String) -> Intent {
            Intent(node: place(text), folders: [NodeID(2), .root], access: .write([]), place: place(text))
        }
        let claim = table.claim([name("a"), name("b")])
        moved(from: 2, "b", to: beside, beside: [NodeID(2), .root], in: &table)
        let left = table.claim([new("b")])
        _ = table.claim([new("a")])
        #expect(table.takeActions() == [.granted(claim), .granted(left)])
    }

    /// A claim by one name of a file went along with the other one.
    @Test func aClaimByOneNameStaysWhenAnotherOneMoves() {
        var table = ClaimTable(answerLimit: .seconds(5))
        let claim = table.claim([names()[0]])
        moved(from: 6, "b", to: [NodeID(7), .root], beside: [NodeID(2), .root], in: &table)
        let (other, waiting) = (table.claim([folder(7)]), table.claim([folder(2)]))
        #expect(table.takeActions() == [.granted(claim), .granted(other)])
        moved(from: 2, "a", to: [NodeID(8), .root], beside: [NodeID(7), .root], in: &table)
        _ = table.claim([folder(8)])
        #expect(table.takeActions() == [.granted(waiting)])
    }

    /// A document is saved as a new file under one of the names.
    @Test func aNameThatIsAnotherFileLeavesTheClaimOnTheOtherOne() {
        var table = ClaimTable(answerLimit: .seconds(5))
        let claim = table.claim(names())
        table.replaced([ReplacedNode(NodeID(4), by: NodeID(9), parent: NodeID(6))])
        #expect(table.nodes(of: claim) == [NodeID(4), NodeID(9)])
        _ = table.claim([names()[0]])
        _ = table.claim([names(9)[1]])
        #expect(table.takeActions() == [.granted(claim)])
    }
}
