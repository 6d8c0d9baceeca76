import PromiseCoordination
import PromiseCore
import PromiseTestSupport
import Testing

/// Root 1 holds folder 2 and file 3; folder 2 holds files 4 and 5.
private func intent(_ node: UInt64, _ access: Access) -> Intent {
    let folders: [UInt64: [UInt64]] = [1: [], 2: [1], 3: [1], 4: [2, 1], 5: [2, 1]]
    return Intent(node: NodeID(node), folders: (folders[node] ?? []).map { NodeID($0) }, access: access)
}

private let read = Access.read([])
private let write = Access.write([])

/// The state machine of claims, by examples.
@Suite struct ClaimTableTests {
    private var table = ClaimTable(answerLimit: .seconds(5))

    @Test func readersShareAndWritersDoNot() {
        var table = table
        let first = table.claim([intent(3, read)])
        let second = table.claim([intent(3, read)])
        let writer = table.claim([intent(3, write)])
        let third = table.claim([intent(3, read)])
        #expect(table.takeActions() == [.granted(first), .granted(second)], "a reader does not overtake a writer who waits")
        table.release(first)
        #expect(table.takeActions().isEmpty)
        table.release(second)
        #expect(table.takeActions() == [.granted(writer)])
        table.release(writer)
        #expect(table.takeActions() == [.granted(third)])
        table.release(third)
        #expect(table.claimCount == 0)
    }

    @Test func aFolderCoversWhatIsBelowIt() {
        for (outer, inner) in [(UInt64(2), UInt64(4)), (4, 2), (1, 5), (5, 1)] {
            var table = table
            let first = table.claim([intent(outer, write)])
            let second = table.claim([intent(inner, read)])
            let beside = table.claim([intent(3, .read(.immediatelyAvailableMetadataOnly))])
            #expect(table.isGranted(first) && !table.isGranted(second) && table.isGranted(beside))
        }
    }

    @Test func aBatchGetsEverythingAtOnceOrNothing() {
        var table = table
        let first = table.claim([intent(4, write)])
        let batch = table.claim([intent(3, write), intent(4, write)])
        let other = table.claim([intent(3, write)])
        #expect(table.takeActions() == [.granted(first)], "the batch holds nothing, and nobody overtakes it")
        table.release(first)
        #expect(table.takeActions() == [.granted(batch)])
        table.release(batch)
        #expect(table.takeActions() == [.granted(other)])
    }

    @Test func metadataAndContentDoNotDisturbEachOther() {
        var table = table
        let writer = table.claim([intent(3, write)])
        let look = table.claim([intent(3, .read(.immediatelyAvailableMetadataOnly))])
        let tag = table.claim([intent(3, .write(.contentIndependentMetadataOnly))])
        #expect(table.takeActions() == [.granted(writer), .granted(look)])
        table.release(look)
        #expect(table.takeActions() == [.granted(tag)])
        let deletion = table.claim([intent(3, .write(.forDeleting))])
        table.release(writer)
        #expect(table.takeActions().isEmpty, "what deletes waits for everybody")
        table.release(tag)
        #expect(table.takeActions() == [.granted(deletion)])
    }

    @Test func onePurposeNeverWaitsForItself() {
        var table = table
        let mine = Purpose(rawValue: "mine")
        let reading = table.claim([intent(3, read)], purpose: mine)
        let upgrade = table.claim([intent(3, write)], purpose: mine)
        #expect(table.takeActions() == [.granted(reading), .granted(upgrade)])
    }

    @Test func twoWhoBothWantMoreAreToldOfTheDeadlock() {
        var table = table
        let (one, two) = (Purpose(rawValue: "1"), Purpose(rawValue: "2"))
        let first = table.claim([intent(3, read)], purpose: one)
        let second = table.claim([intent(3, read)], purpose: two)
        let upgrade = table.claim([intent(3, write)], purpose: one)
        let circle = table.claim([intent(3, write)], purpose: two)
        #expect(table.takeActions() == [.granted(first), .granted(second), .refused(circle, .deadlock)])
        table.release(second)
        #expect(table.takeActions() == [.granted(upgrade)])
    }

    /// Nobody looked for circles but when a claim came, and four waited for ever.
    @Test func aCircleThatAMoveClosesIsFound() {
        var table = table
        func item(_ node: UInt64, in folder: UInt64) -> Intent {
            Intent(node: NodeID(node), folders: [NodeID(folder), .root], access: write)
        }
        let folder = Intent(node: NodeID(2), folders: [.root], access: write)
        let (p, q) = (Purpose(rawValue: "p"), Purpose(rawValue: "q"))
        let around = table.claim([folder], purpose: p, within: [])
        let other = table.claim([item(10, in: 3)], purpose: q, within: [])
        let third = table.claim([item(11, in: 4)])
        let inner = table.claim([item(10, in: 3)], purpose: p, within: [around])
        let waiting = table.claim([item(11, in: 4)], purpose: q, within: [other])
        #expect(table.takeActions() == [.granted(around), .granted(other), .granted(third)])
        table.moved(MovedName(NodeID(11), in: [NodeID(2), .root]))
        table.release(third)
        #expect(table.takeActions().contains(.refused(waiting, .deadlock)))
        table.release(other)
        #expect(table.takeActions() == [.granted(inner)])
    }

    /// One that waits for the other's follower is refused only when that one ends after it.
    @Test func twoAccessesOfOnePurposeThatAreNotNestedAreNoCircle() {
        var table = table
        let mine = Purpose(rawValue: "mine")
        let first = table.claim([intent(3, read)], purpose: mine, within: [])
        let other = table.claim([intent(3, write), intent(4, write)], purpose: Purpose(rawValue: "other"))
        let second = table.claim([intent(4, write)], purpose: mine, within: [])
        let nested = table.claim([intent(4, write)], purpose: mine, within: [first])
        #expect(table.takeActions() == [.granted(first), .refused(nested, .deadlock)])
        table.release(first)
        table.release(other)
        #expect(table.takeActions() == [.granted(other), .granted(second)])
    }

    @Test func whoShowsWhatIsInAFolderHearsThatTheFolderMoved() {
        var table = table
        let item = table.addPresenter(of: NodeID(5), in: [NodeID(2), NodeID(1)])
        table.moved(MovedName(NodeID(2), in: [NodeID(6), NodeID(1)]))
        let old = OldPlace(parent: NodeID(1), name: FileName("two")!)
        let above = table.addPresenter(of: NodeID(6), in: [NodeID(1)])
        table.happened(.moved, to: NodeID(2), in: [NodeID(6), NodeID(1)], from: old)
        #expect(table.takeActions() == [.tell(item, .didMove), .tell(above, .subitemDidMove(NodeID(2), from: old))])
    }

    @Test func claimsStayWithTheirItemsWhenThoseMove() {
        var table = table
        let file = table.claim([intent(4, write)])
        table.moved(MovedName(NodeID(4), in: [NodeID(1)]))
        let folder = table.claim([intent(2, write)])
        let here = table.claim([intent(3, write)])
        table.moved(MovedName(NodeID(2), in: [NodeID(6), NodeID(1)]))
        let root = table.claim([Intent(node: NodeID(6), folders: [.root], access: write)])
        #expect(table.isGranted(file) && table.isGranted(folder) && table.isGranted(here) && !table.isGranted(root))
        table.release(folder)
        #expect(table.isGranted(root))
    }

    @Test func claimsAndPresentersStayWithADocumentThatIsSavedAsANewFile() {
        var table = table
        let first = table.claim([intent(4, write)])
        let presenter = table.addPresenter(of: NodeID(4), in: [NodeID(2), NodeID(1)])
        let waiting = table.claim([intent(4, write)])
        table.replaced([ReplacedNode(NodeID(4), by: NodeID(5))])
        let other = table.claim([intent(5, read)])
        let expected: [ClaimTable.Action] = [.granted(first), .tell(presenter, .didChange)]
        #expect(table.takeActions() == expected, "the new file is the document that has a claim")
        #expect(table.nodes(of: first) == [NodeID(5)] && table.nodes(of: waiting) == [NodeID(5)])
        table.happened(.changed, to: NodeID(5), in: [NodeID(2), NodeID(1)])
        #expect(table.takeActions() == [.tell(presenter, .didChange)])
        table.removePresenter(presenter)
        table.release(first)
        table.release(waiting)
        #expect(table.takeActions() == [.granted(waiting), .granted(other)])
    }

    @Test func twoDocumentsThatExchangeTheirContentsKeepTheirClaims() {
        var table = table
        let first = table.claim([intent(4, write)])
        table.replaced([ReplacedNode(NodeID(4), by: NodeID(5)), ReplacedNode(NodeID(5), by: NodeID(4))])
        let beside = table.claim([intent(4, write)])
        #expect(table.isGranted(beside))
        let second = table.claim([intent(5, write)])
        #expect(!table.isGranted(second) && table.nodes(of: first) == [NodeID(5)])
    }

    @Test func whoShowsAFolderIsToldOfWhatLeavesIt() {
        var table = table
        let folder = table.addPresenter(of: NodeID(2), in: [NodeID(1)])
        let item = table.addPresenter(of: NodeID(4), in: [NodeID(2), NodeID(1)])
        table.moved(MovedName(NodeID(4), in: [NodeID(1)]))
        table.left([NodeID(2)], NodeID(4))
        #expect(table.takeActions() == [.tell(folder, .subitemDidMove(NodeID(4)))])
        table.happened(.moved, to: NodeID(4), in: [NodeID(1)])
        #expect(table.takeActions() == [.tell(item, .didMove)])
    }

    @Test func anEvictionDisturbsWhoUsesTheContentAndAsksWhoShowsIt() {
        var table = table
        let reader = table.claim([intent(3, read)])
        let presenter = table.addPresenter(of: NodeID(3), in: [NodeID(1)])
        let eviction = table.claim([intent(3, .write(.forEvicting))])
        #expect(table.takeActions() == [.granted(reader)])
        table.release(reader)
        guard case .ask(presenter, .accommodateEviction, let number, _)? = table.takeActions().first else {
            Issue.record("the presenter was not asked")
            return
        }
        table.answered(number)
        #expect(table.takeActions() == [.granted(eviction)])
    }

    @Test func waitingEndsWithItsDeadline() {
        var table = table
        let first = table.claim([intent(3, write)], deadline: .seconds(1))
        let second = table.claim([intent(3, write)], deadline: .seconds(1))
        #expect(table.nextDeadline == .seconds(1))
        table.tick(now: .seconds(2))
        #expect(table.takeActions() == [.granted(first), .refused(second, .timedOut)])
        #expect(table.nextDeadline == nil && table.claimCount == 1)
    }

    // MARK: - Presenters

    @Test func presentersAreAskedInOrderAndToldThatItIsTheirsAgain() {
        var table = table
        let editor = table.addPresenter(of: NodeID(3), in: [.root])
        let reader = table.claim([intent(3, read)])
        var actions = table.takeActions()
        guard case .ask(editor, .relinquishToReader, let first, _)? = actions.first, actions.count == 1 else {
            return #expect(Bool(false), "\(actions)")
        }
        table.answered(first)
        actions = table.takeActions()
        guard case .ask(editor, .saveChanges, let second, _)? = actions.first else { return #expect(Bool(false), "\(actions)") }
        table.answered(second)
        #expect(table.takeActions() == [.granted(reader)])
        table.release(reader)
        #expect(table.takeActions() == [.tell(editor, .reacquire)])
    }

    @Test func optionsDecideWhatPresentersAreAsked() {
        let cases: [(Access, [Question])] = [
            (.read(.withoutChanges), [.relinquishToReader]), (.read(.immediatelyAvailableMetadataOnly), []),
            (.read(.forUploading), [.relinquishToReader, .saveChanges]), (write, [.relinquishToWriter]),
            (.write(.forMoving), [.relinquishToWriter]), (.write(.forMerging), [.relinquishToWriter, .saveChanges]),
            (.write(.forDeleting), [.relinquishToWriter, .accommodateDeletion]),
            (.write(.forReplacing), [.relinquishToWriter, .accommodateDeletion]), (.write(.contentIndependentMetadataOnly), []),
        ]
        for (access, expected) in cases {
            var table = table
            _ = table.addPresenter(of: NodeID(3), in: [.root])
            _ = table.claim([intent(3, access)])
            var asked: [Question] = []
            while case .ask(_, let question, let number, _)? = table.takeActions().first {
                asked.append(question)
                table.answered(number)
            }
            #expect(asked == expected, "\(access)")
        }
    }

    /// What the last item wanted was all that a presenter was asked: a writer got in beside one that had been asked to let
    /// readers have it, and what it showed was removed.
    @Test func aClaimAsksAPresenterForAllThatItsItemsWant() {
        let cases: [([Intent], [Question])] = [
            ([intent(4, write), intent(4, .read(.withoutChanges))], [.relinquishToWriter]),
            ([intent(4, .read([])), intent(4, write)], [.relinquishToWriter, .saveChanges]),
            ([intent(2, .write(.forDeleting)), intent(4, .read([]))], [.relinquishToWriter, .saveChanges, .accommodateDeletion]),
        ]
        for (intents, expected) in cases { #expect(questions(presenting: 4, in: [2, 1], to: intents).map(\.0) == expected) }
        let above = questions(presenting: 2, in: [1], to: [intent(2, .read(.withoutChanges)), intent(4, .write(.forDeleting))])
        #expect(above.map(\.0) == [.relinquishToReader, .accommodateSubitemDeletion] && above.map(\.1) == [NodeID(2), NodeID(4)])
    }

    private func questions(presenting node: UInt64, in folders: [UInt64], to intents: [Intent]) -> [(Question, NodeID)] {
        var table = table
        _ = table.addPresenter(of: NodeID(node), in: folders.map { NodeID($0) })
        _ = table.claim(intents)
        var asked: [(Question, NodeID)] = []
        while case .ask(_, let question, let number, let node)? = table.takeActions().first {
            asked.append((question, node))
            table.answered(number)
        }
        return asked
    }

    @Test func aDeletionAsksWhatIsDeepestFirstAndTheFolderAbove() {
        var table = table
        let above = table.addPresenter(of: .root, in: [])
        let folder = table.addPresenter(of: NodeID(2), in: [.root])
        let file = table.addPresenter(of: NodeID(4), in: [NodeID(2), .root])
        let deletion = table.claim([intent(3, write), intent(2, .write(.forDeleting))])
        var asked: [PresenterID] = []
        // Each only when what is deeper has been done.
        while case .ask(let presenter, let question, let number, _)? = table.takeActions().first {
            asked.append(presenter)
            if presenter == above { #expect(question == .accommodateSubitemDeletion) }
            table.answered(number)
            if case .ask(presenter, let second, let number, _)? = table.takeActions().first {
                #expect(second == .accommodateDeletion)
                table.answered(number)
            } else {
                #expect(presenter == above && table.isGranted(deletion))
                break
            }
        }
        #expect(asked == [file, folder, above])
    }

    @Test func whoResolvesAVersionForItsOwnPurposeKnowsThatItDid() {
        var table = table
        let mine = Purpose(rawValue: "mine")
        let own = table.addPresenter(of: NodeID(4), in: [NodeID(2), .root], purpose: mine)
        let other = table.addPresenter(of: NodeID(4), in: [NodeID(2), .root])
        let name = FileName("a (conflict)")!
        table.happened(.version(.resolved, name), to: NodeID(4), in: [NodeID(2), .root], by: mine)
        #expect(table.takeActions() == [.tell(other, .version(.resolved, name))])
        // A claim that is there by chance when it is told makes no difference.
        _ = table.claim([intent(4, write)], purpose: mine, within: [])
        _ = table.takeActions()
        table.happened(.version(.lost, name), to: NodeID(4), in: [NodeID(2), .root])
        #expect(table.takeActions() == [.tell(own, .version(.lost, name)), .tell(other, .version(.lost, name))])
    }

    @Test func aPresenterMaySaveByAClaimOfItsOwn() {
        var table = table
        let mine = Purpose(rawValue: "editor")
        _ = table.addPresenter(of: NodeID(3), in: [.root], purpose: mine)
        let reader = table.claim([intent(3, .read([]))])
        guard case .ask(_, _, let first, _)? = table.takeActions().first else { return #expect(Bool(false)) }
        table.answered(first)
        guard case .ask(_, .saveChanges, let second, _)? = table.takeActions().first else { return #expect(Bool(false)) }
        let save = table.claim([intent(3, write)], purpose: mine)
        #expect(table.takeActions() == [.granted(save)], "it does not wait for who asked it to save")
        table.answered(second)
        #expect(table.takeActions().isEmpty, "the reader waits until it is saved")
        table.release(save)
        #expect(table.takeActions() == [.granted(reader)])
    }

    @Test func aPresenterThatDoesNotAnswerOrDiesHoldsUpNobody() {
        var table = table
        let silent = table.addPresenter(of: NodeID(3), in: [.root])
        let reader = table.claim([intent(3, .read(.withoutChanges))])
        _ = table.takeActions()
        table.tick(now: .seconds(6))
        #expect(table.takeActions() == [.granted(reader)])
        table.release(reader)
        _ = table.takeActions()
        let writer = table.claim([intent(3, write)])
        #expect(table.takeActions() == [.granted(writer)], "who does not answer once is not waited for again")
        table.release(writer)
        table.heard(from: silent)
        let second = table.claim([intent(3, write)])
        _ = table.takeActions()
        #expect(!table.isGranted(second), "who answers late is asked again")
        table.removePresenter(silent)
        #expect(table.takeActions() == [.granted(second)])
    }

    @Test func aPresenterSavesThoughAThirdClaimWaits() {
        var table = table
        let mine = Purpose(rawValue: "editor")
        _ = table.addPresenter(of: NodeID(3), in: [.root], purpose: mine)
        let reader = table.claim([intent(3, read)])
        guard case .ask(_, _, let first, _)? = table.takeActions().first else { return #expect(Bool(false)) }
        table.answered(first)
        guard case .ask(_, .saveChanges, let second, _)? = table.takeActions().first else { return #expect(Bool(false)) }
        let third = table.claim([intent(3, write)])
        let save = table.claim([intent(3, write)], purpose: mine)
        #expect(table.takeActions() == [.granted(save)], "nor for who waits for who asked it to save")
        table.moved(MovedName(NodeID(3), in: [NodeID(2), .root]))
        table.answered(second)
        #expect(table.takeActions().isEmpty, "and both wait until it is saved, wherever the item is")
        table.release(save)
        #expect(table.takeActions() == [.granted(reader)])
        table.release(reader)
        _ = table.takeActions()
        #expect(!table.isGranted(third) && table.claimCount == 1)
    }

    @Test func onlyAGrantedClaimToWriteLetsItsProcessWrite() {
        var table = table
        let reader = table.claim([intent(3, read)])
        let writer = table.claim([intent(2, write)])
        let waiting = table.claim([intent(4, write)])
        #expect(!table.isGranted(reader, toWrite: [intent(3, write)]))
        #expect(!table.isGranted(waiting, toWrite: [intent(4, write)]))
        #expect(table.isGranted(writer, toWrite: [intent(4, write)]) && !table.isGranted(writer, toWrite: [intent(3, write)]))
    }

    /// A document that was being read again when its folder was removed stayed open, as its claim to read kept that from it.
    @Test func whoReadsOrWaitsHearsWhatOthersDo() {
        var table = table
        let mine = Purpose(rawValue: "mine")
        let other = table.claim([intent(4, write)])
        let presenter = table.addPresenter(of: NodeID(4), in: [NodeID(2), .root], purpose: mine)
        func isTold() -> Bool {
            table.happened(.deleted, to: NodeID(4), in: [NodeID(2), .root])
            return table.takeActions().contains(.tell(presenter, .didDelete))
        }
        let reader = table.claim([intent(4, read)], purpose: mine)
        #expect(!table.isGranted(reader) && isTold())
        table.release(other)
        #expect(table.isGranted(reader) && isTold())
        table.release(reader)
        let writer = table.claim([intent(4, write)], purpose: mine)
        #expect(table.isGranted(writer) && !isTold())
        table.release(writer)
        // It reads this one, and writes another one.
        _ = table.claim([intent(4, read), intent(3, write)], purpose: mine)
        #expect(isTold())
    }

    /// A document that read its file again was asked by a claim that came before, and answered when it had read: others
    /// waited five seconds for that.
    @Test func aPresenterThatIsAskedReadsFirstThoughItsClaimCameLater() {
        var table = table
        let mine = Purpose(rawValue: "mine")
        let first = table.claim([intent(4, read)])
        let presenter = table.addPresenter(of: NodeID(4), in: [NodeID(2), .root], purpose: mine)
        let writer = table.claim([intent(4, write)])
        let beside = table.claim([intent(2, write)])
        let second = table.claim([intent(4, read)], purpose: mine)
        #expect(!table.isGranted(second), "a reader does not overtake a writer who waits")
        _ = table.takeActions()
        table.release(first)
        #expect(!table.isGranted(writer) && table.isGranted(second))
        var asked: [UInt64] = []
        for case .ask(let who, .relinquishToWriter, let number, _) in table.takeActions() where who == presenter {
            asked.append(number)
        }
        #expect(asked.count == 1)
        for number in asked { table.answered(number) }
        #expect(!table.isGranted(writer))
        table.release(second)
        #expect(table.isGranted(writer))
        table.release(writer)
        #expect(!table.isGranted(beside), "the presenter is asked again")
    }

    @Test func presentersHearOfTheirItemAndOfWhatIsBelow() {
        var table = table
        let folder = table.addPresenter(of: NodeID(2), in: [.root])
        let file = table.addPresenter(of: NodeID(4), in: [NodeID(2), .root])
        table.happened(.changed, to: NodeID(4), in: [NodeID(2), .root])
        #expect(table.takeActions() == [.tell(file, .didChange), .tell(folder, .subitemDidChange(NodeID(4)))])
        let name = FileName("a (conflict)")!
        table.happened(.version(.gained, name), to: NodeID(4), in: [NodeID(2), .root])
        let told: [ClaimTable.Action] = [
            .tell(file, .version(.gained, name)), .tell(folder, .subitemVersion(.gained, name, NodeID(4))),
        ]
        #expect(table.takeActions() == told)
        table.removePresenter(file)
        table.removePresenter(folder)
        #expect(table.presenterCount == 0)
    }
}
