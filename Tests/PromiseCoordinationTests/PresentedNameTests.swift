import PromiseCoordination
import PromiseCore
import Testing

/// A presenter shows one name of a file, and follows the document that has it.
@Suite struct PresentedNameTests {
    private let folders = [NodeID(2), NodeID.root]

    /// Who showed the other name went along to the new file, and heard nothing of its own any more.
    @Test func whoShowsAnotherNameStaysWhenOneIsSavedAsANewFile() {
        var table = ClaimTable(answerLimit: .seconds(5))
        let first = table.addPresenter(of: NodeID(4), named: EntryID(1), in: folders)
        let second = table.addPresenter(of: NodeID(4), named: EntryID(2), in: folders)
        table.replaced([ReplacedNode(NodeID(4), by: NodeID(5), name: EntryID(1))])
        #expect(table.takeActions() == [.tell(first, .didChange)])
        table.happened(.changed, to: NodeID(4), in: [])
        table.happened(.changed, to: NodeID(5), in: [])
        #expect(table.takeActions() == [.tell(second, .didChange), .tell(first, .didChange)])
        #expect(table.presentedNames(of: NodeID(4)) == [EntryID(2)])
    }

    /// Both were told, and the first that it had moved to where it was.
    @Test func whoShowsAnotherNameIsNotToldThatOneMoved() {
        var table = ClaimTable(answerLimit: .seconds(5))
        let first = table.addPresenter(of: NodeID(4), named: EntryID(1), in: folders)
        let second = table.addPresenter(of: NodeID(4), named: EntryID(2), in: folders)
        table.happened(.moved, to: NodeID(4), in: [], named: EntryID(2))
        #expect(table.takeActions() == [.tell(second, .didMove)])
        table.happened(.moved, to: NodeID(4), in: [])
        #expect(table.takeActions() == [.tell(first, .didMove), .tell(second, .didMove)], "which one is not known")
    }

    /// When a folder above one name had moved, who showed the file was not asked any more for the folder of the other one;
    /// and for ever for that of a name that had gone.
    @Test func whoShowsAFileOfTwoNamesIsAskedForTheFoldersOfBoth() {
        var table = ClaimTable(answerLimit: .seconds(5))
        let presenter = table.addPresenter(
            of: NodeID(4), named: EntryID(1), chains: [[NodeID(2), .root], [NodeID(3), .root]])
        func asked(for folder: NodeID) -> Set<PresenterID> {
            var table = table
            _ = table.claim([Intent(node: folder, folders: [.root], access: .write([]))])
            return Set(table.takeActions().compactMap { if case .ask(let who, _, _, _) = $0 { who } else { nil } })
        }
        table.moved(MovedName(NodeID(2), in: [NodeID(5), .root]))
        for folder in [NodeID(2), NodeID(5), NodeID(3)] { #expect(asked(for: folder) == [presenter]) }
        table.named(NodeID(4), [[NodeID(2), NodeID(5), .root], [NodeID(6), .root]])
        #expect(asked(for: NodeID(6)) == [presenter])
        #expect(asked(for: NodeID(3)).isEmpty)
        // Saved as a new file, the document has the one name.
        table.replaced([ReplacedNode(NodeID(4), by: NodeID(7), name: EntryID(1), parent: NodeID(2))])
        #expect(asked(for: NodeID(6)).isEmpty && asked(for: NodeID(5)) == [presenter])
    }

    /// Who showed the name that had gone was told of the other one, asked, and told of its end.
    @Test func whoShowsANameThatHasGoneIsToldOnceAndAskedNoMore() {
        var table = ClaimTable(answerLimit: .seconds(5))
        let first = table.addPresenter(of: NodeID(4), named: EntryID(1), in: folders)
        let second = table.addPresenter(of: NodeID(4), named: EntryID(2), in: folders)
        table.lostNames([EntryID(2)], of: NodeID(4))
        #expect(table.takeActions() == [.tell(second, .didDelete)])
        table.happened(.changed, to: NodeID(4), in: [])
        table.lostNames([EntryID(1), EntryID(2)], of: NodeID(4))
        #expect(table.takeActions() == [.tell(first, .didChange), .tell(first, .didDelete)])
        let claim = table.claim([Intent(node: NodeID(4), folders: folders, access: .write([]))])
        #expect(table.takeActions() == [.granted(claim)])
        table.removePresenter(second)
        #expect(table.presenterCount == 1)
    }

    /// Who showed the name that stays was asked to close it, as an editor removed its backup.
    @Test func whoShowsANameThatStaysIsNotAskedForTheEndOfAnother() {
        var table = ClaimTable(answerLimit: .seconds(5))
        let first = table.addPresenter(of: NodeID(4), named: EntryID(1), in: folders)
        let second = table.addPresenter(of: NodeID(4), named: EntryID(2), in: folders)
        let claim = table.claim([
            Intent(node: NodeID(4), folders: folders, access: .write(.forDeleting), stayingNames: [EntryID(2)])
        ])
        var asked: [PresenterID: [Question]] = [:]
        while case let actions = table.takeActions(), actions != [.granted(claim)] {
            for case .ask(let presenter, let question, let number, _) in actions {
                asked[presenter, default: []].append(question)
                table.answered(number)
            }
            if actions.isEmpty { break }
        }
        #expect(asked[first] == [.relinquishToWriter, .accommodateDeletion])
        #expect(asked[second] == [.relinquishToWriter])
    }

    /// It was shown as the backup, and had gone with that.
    @Test func whoShowsADocumentThatComesBackFromItsBackupIsToldWhere() {
        var table = ClaimTable(answerLimit: .seconds(5))
        let mine = Purpose(rawValue: "a")
        let presenter = table.addPresenter(of: NodeID(4), named: EntryID(1), in: folders, purpose: mine)
        let claim = table.claim([Intent(node: NodeID(4), folders: folders, access: .write([]))], purpose: mine)
        table.replaced([ReplacedNode(NodeID(4), by: NodeID(5), name: EntryID(1), newFolders: [NodeID(3), .root])])
        #expect(table.takeActions() == [.granted(claim), .tell(presenter, .didMove), .tell(presenter, .didChange)])
        #expect(table.presentedNodes == [NodeID(5)] && table.nodes(of: claim) == [NodeID(4)])
        table.happened(.moved, to: NodeID(3), in: [.root])
        #expect(table.takeActions() == [.tell(presenter, .didMove)])
    }

    /// The name that had gone was not said: who shows a folder could not know which one it was.
    @Test func whoShowsAFolderHearsWhichNameWentFromIt() {
        var table = ClaimTable(answerLimit: .seconds(5))
        let folder = table.addPresenter(of: NodeID(2), named: EntryID(9), in: [.root])
        table.happened(.appeared, to: NodeID(4), in: folders, named: EntryID(2))
        #expect(table.takeActions() == [.tell(folder, .subitemDidAppear(NodeID(4), named: EntryID(2)))])
        let place = OldPlace(parent: NodeID(2), name: FileName("two")!)
        table.vanished(NodeID(4), from: place, in: folders)
        #expect(table.takeActions() == [.tell(folder, .subitemDidDelete(NodeID(4), from: place))])
    }
}
