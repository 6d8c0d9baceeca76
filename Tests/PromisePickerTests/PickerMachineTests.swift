import PromiseKit
import PromisePicker
import Testing

/// The picker as transcripts: an event, and the actions that follow.
@Suite struct PickerMachineTests {
    private let work = PickerFolder(domain: "work")

    private func file(_ path: String, _ kind: String = "file") -> PickerItem {
        PickerItem(domain: "work", path: Array(path.utf8), kind: kind)
    }

    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    /// A machine that shows a folder with these items.
    private func shown(_ request: PickerRequest, _ items: [PickerItem], total: Int? = nil)
        -> PickerMachine
    {
        var machine = PickerMachine(request)
        _ = machine.handle(.places([PickerPlace(.domain, title: "work", folder: work)]))
        let generation = machine.generation
        _ = machine.handle(
            .window(
                generation: generation, offset: 0, total: total ?? items.count, items: items,
                reason: nil))
        return machine
    }

    @Test func theOnlyDomainIsShownAtOnce() {
        var machine = PickerMachine(PickerRequest(.open))
        let actions = machine.handle(
            .places([
                PickerPlace(.recent, title: "Recent"),
                PickerPlace(.domain, title: "work", folder: work),
            ]))
        #expect(
            actions == [.list(PickerListing(.folder(work)), generation: 1, offset: 0, limit: 200)])
    }

    @Test func ofSeveralDomainsTheRecentDocumentsAreShownAndPlacesAreAFolder() {
        let places = ["a", "b"].map {
            PickerPlace(.domain, title: $0, folder: PickerFolder(domain: $0))
        }
        var machine = PickerMachine(PickerRequest(.open))
        #expect(
            machine.handle(.places(places)) == [
                .list(PickerListing(.recent), generation: 1, offset: 0, limit: 200)
            ])
        var request = PickerRequest(.export)
        request.sources = [.init(path: bytes("/tmp/x"))]
        machine = PickerMachine(request)
        _ = machine.handle(.places(places))
        #expect(machine.folder == PickerFolder(domain: "a") && machine.name == bytes("x"))
    }

    /// A test of the terminal lost an Enter that came while the filtered list was on its way.
    @Test func whatIsTypedAheadOfAListIsDoneWhenItIsThere() {
        var machine = PickerMachine(PickerRequest(.open))
        _ = machine.handle(.places([PickerPlace(.domain, title: "work", folder: work)]))
        for event in [PickerEvent.filter("docs"), .enter, .filter("plan"), .step(1), .enter] {
            _ = machine.handle(event)
        }
        // Only the last list counts, and what was typed after it waits for it in order.
        #expect(machine.generation == 2 && machine.listing?.filter == "docs")
        func answer(_ items: [PickerItem]) -> [PickerAction] {
            machine.handle(
                .window(
                    generation: machine.generation, offset: 0, total: items.count, items: items,
                    reason: nil))
        }
        var plan = PickerListing(.folder(PickerFolder(domain: "work", path: bytes("docs"))))
        let entered = PickerAction.list(plan, generation: 3, offset: 0, limit: 200)
        #expect(answer([file("docs", "folder")]) == [entered])
        plan.filter = "plan"
        #expect(
            answer([file("docs/a"), file("docs/plan.md")]) == [
                .list(plan, generation: 4, offset: 0, limit: 200)
            ])
        #expect(
            answer([file("docs/plan"), file("docs/plan.md")])
                == [.perform([.open(file("docs/plan.md"))])])
    }

    @Test func whatIsTypedAheadOfAListThatCannotBeHadIsForgottenAndCancelWaitsForNothing() {
        var machine = PickerMachine(PickerRequest(.open))
        _ = machine.handle(.places([PickerPlace(.domain, title: "work", folder: work)]))
        _ = machine.handle(.enter)
        _ = machine.handle(.failed(generation: machine.generation, message: "it is away"))
        _ = machine.handle(.changed)
        #expect(
            machine.handle(
                .window(
                    generation: machine.generation, offset: 0, total: 1, items: [file("plan.md")],
                    reason: nil)) == [])
        _ = machine.handle(.filter("x"))
        for _ in 0..<1000 { _ = machine.handle(.enter) }
        #expect(machine.handle(.cancel) == [.finish(.cancelled)])
    }

    @Test func enterThatIsPressedAgainAsNothingHappensPicksNothingUnseen() {
        var machine = PickerMachine(PickerRequest(.open))
        _ = machine.handle(.places([PickerPlace(.domain, title: "work", folder: work)]))
        for _ in 0..<3 { _ = machine.handle(.enter) }
        for (generation, item) in [(1, file("docs", "folder")), (2, file("docs/plan.md"))] {
            let actions = machine.handle(
                .window(generation: generation, offset: 0, total: 1, items: [item], reason: nil))
            #expect(actions.count == (generation == 1 ? 1 : 0) && machine.phase == .browsing)
        }
    }

    /// The page could not pick several documents, nor the folder that it showed.
    @Test func aFrontEndWithListsOfItsOwnWaitsForNone() {
        var request = PickerRequest(.open)
        request.allowsMultiple = true
        var machine = PickerMachine(request, hasLists: false)
        _ = machine.handle(.places([PickerPlace(.domain, title: "work", folder: work)]))
        _ = machine.handle(.markItem(file("a")))
        #expect(machine.handle(.confirm) == [.perform([.open(file("a"))])])
    }

    /// No key did anything any more, and what was typed was kept.
    @Test func aPartThatCannotBeHadHoldsUpNoKeyAndIsAskedForAgain() {
        let items = (0..<200).map { file("\($0)") }
        var machine = shown(PickerRequest(.open), items, total: 1000)
        let last = PickerAction.list(
            PickerListing(.folder(work)), generation: 1, offset: 800, limit: 200)
        #expect(machine.handle(.end) == [last] && machine.handle(.enter) == [])
        _ = machine.handle(.failed(generation: 1, message: "it is away"))
        #expect(machine.handle(.see(first: 995, count: 5)) == [], "nobody asks without end")
        #expect(machine.handle(.step(-1)) == [last])
        _ = machine.handle(.failed(generation: 1, message: "it is away"))
        _ = machine.handle(.go(to: 0))
        #expect(machine.handle(.enter) == [.perform([.open(items[0])])])
    }

    @Test func enterOpensAFolderAndPicksADocument() {
        var machine = shown(PickerRequest(.open), [file("docs", "folder"), file("plan.md")])
        let inside = PickerFolder(domain: "work", path: bytes("docs"))
        #expect(
            machine.handle(.enter) == [
                .list(PickerListing(.folder(inside)), generation: 2, offset: 0, limit: 200)
            ])
        _ = machine.handle(.window(generation: 2, offset: 0, total: 0, items: [], reason: nil))
        #expect(machine.handle(.enter) == [])
        // Up again, the cursor is on the folder one came from.
        _ = machine.handle(.up)
        _ = machine.handle(
            .window(
                generation: 3, offset: 0, total: 2,
                items: [file("another", "folder"), file("docs", "folder")], reason: nil))
        #expect(machine.cursor == 1)
        _ = machine.handle(
            .window(generation: 3, offset: 0, total: 1, items: [file("plan.md")], reason: nil))
        #expect(machine.handle(.enter) == [.perform([.open(file("plan.md"))])])
        #expect(
            machine.handle(.performed([PickedDocument(path: bytes("/m/plan.md"))]))
                == [.finish(.picked([PickedDocument(path: bytes("/m/plan.md"))]))])
        #expect(machine.handle(.cancel) == [])
    }

    @Test func aLateAnswerToAnotherListIsNotShown() {
        var machine = shown(PickerRequest(.open), [file("a", "folder")])
        _ = machine.handle(.enter)
        _ = machine.handle(
            .window(generation: 1, offset: 0, total: 9, items: [file("late")], reason: nil))
        #expect(machine.total == nil && machine.current == nil)
        _ = machine.handle(.failed(generation: 1, message: "late"))
        #expect(machine.message == nil)
        _ = machine.handle(.failed(generation: 2, message: "it is offline"))
        #expect(machine.message == "it is offline" && machine.total == 0)
    }

    @Test func severalAreMarkedInOrderAndOnlyWhereSeveralAreWanted() {
        var request = PickerRequest(.import)
        request.allowsMultiple = true
        let items = [file("d", "folder"), file("a"), file("b")]
        var machine = shown(request, items)
        _ = machine.handle(.mark)
        #expect(machine.marked.isEmpty, "a folder is no document")
        _ = machine.handle(.go(to: 2))
        _ = machine.handle(.mark)
        _ = machine.handle(.go(to: 1))
        _ = machine.handle(.mark)
        #expect(machine.handle(.confirm) == [.perform([.copyOut(file("b")), .copyOut(file("a"))])])
        machine = shown(PickerRequest(.open), items)
        _ = machine.handle(.go(to: 1))
        _ = machine.handle(.mark)
        #expect(machine.marked.isEmpty)
    }

    @Test func foldersArePickedByTheMarkOrAsTheOneThatIsShown() {
        var request = PickerRequest(.open)
        request.picksFolders = true
        var machine = shown(request, [file("d", "folder")])
        #expect(machine.listing?.foldersOnly == true)
        #expect(machine.handle(.confirm) == [.perform([.open(file("d", "folder"))])])
        machine = shown(request, [])
        #expect(machine.handle(.confirm) == [.perform([.open(file("", "folder"))])])
    }

    @Test func eachModeHasItsConsequence() {
        let source = PickerRequest.Source(path: bytes("/home/me/report.pdf"))
        var request = PickerRequest(.move)
        request.sources = [source]
        var machine = shown(request, [file("report.pdf")])
        #expect(
            machine.handle(.confirm) == [
                .perform([.move(source, to: work, as: bytes("report.pdf"))])
            ])
        request = PickerRequest(.export)
        request.sources = [source]
        machine = shown(request, [])
        _ = machine.handle(.name(bytes("final.pdf")))
        #expect(
            machine.handle(.confirm) == [
                .perform([.export(source, to: work, as: bytes("final.pdf"))])
            ])
        request = PickerRequest(.create)
        machine = shown(request, [])
        #expect(machine.handle(.confirm) == [] && machine.message == "it needs a name")
        for name in ["a/b", "..", String(repeating: "n", count: 256)] {
            _ = machine.handle(.name(bytes(name)))
            #expect(machine.handle(.confirm) == [], "\(name)")
        }
        _ = machine.handle(.name(bytes("new.md")))
        #expect(machine.handle(.confirm) == [.perform([.create(work, name: bytes("new.md"))])])
    }

    @Test func whatCannotBeDoneIsSaidAndThePickerGoesOn() {
        var machine = shown(PickerRequest(.open), [file("a")])
        _ = machine.handle(.enter)
        #expect(machine.phase == .performing && machine.handle(.cancel) == [])
        let again = machine.handle(.refused("the disk is full"))
        #expect(
            again == [.list(PickerListing(.folder(work)), generation: 2, offset: 0, limit: 200)])
        #expect(machine.message == "the disk is full" && machine.phase == .browsing)
        #expect(machine.handle(.cancel) == [.finish(.cancelled)])
    }

    @Test func aLongListKeepsAFewWindowsOnly() {
        let total = 100_000
        func window(_ offset: Int) -> [PickerItem] {
            (offset..<min(total, offset + 200)).map { file("document \($0)") }
        }
        var machine = shown(PickerRequest(.open), window(0), total: total)
        for first in stride(from: 0, to: total, by: 500) {
            for case .list(_, let generation, let offset, let limit) in machine.handle(
                .see(first: first, count: 40))
            {
                #expect(limit == 200)
                _ = machine.handle(
                    .window(
                        generation: generation, offset: offset, total: total, items: window(offset),
                        reason: nil))
            }
            #expect(machine.item(first)?.path == bytes("document \(first)"))
            #expect((0..<500).filter { machine.item($0 * 200) != nil }.count <= 7)
        }
        let last = PickerListing(.folder(work))
        #expect(machine.handle(.end) == [.list(last, generation: 1, offset: 99_800, limit: 200)])
    }

    @Test func orderFilterAndSearchAskAgain() {
        var machine = shown(PickerRequest(.open), [file("a")])
        _ = machine.handle(.sort(.date))
        #expect(machine.listing?.key == .date && machine.listing?.isDescending == true)
        _ = machine.handle(.sort(.date))
        #expect(machine.listing?.isDescending == false)
        _ = machine.handle(.filter("pl"))
        #expect(machine.listing?.filter == "pl" && machine.generation == 4)
        #expect(machine.handle(.filter("pl")) == [])
        _ = machine.handle(.search("budget"))
        #expect(machine.listing?.view == .everywhere("budget") && machine.listing?.filter == "")
    }

    @Test func aPlaceCanBeMadeAndRenamedWhereOneIsPicked() {
        var request = PickerRequest(.create)
        request.suggestedName = bytes("x")
        var machine = shown(request, [file("d", "folder")])
        #expect(
            machine.handle(.makeFolder(bytes("new"))) == [.makeFolder(work, name: bytes("new"))])
        #expect(
            machine.handle(.rename(bytes("e"))) == [.rename(file("d", "folder"), to: bytes("e"))])
        machine = shown(PickerRequest(.open), [file("a")])
        #expect(
            machine.handle(.makeFolder(bytes("new"))) == []
                && machine.handle(.rename(bytes("e"))) == [])
    }

    @Test func aNameThatIsTakenCountsWhenItIsSaidTwice() {
        var request = PickerRequest(.save)
        request.suggestedName = bytes("a.txt")
        var machine = shown(request, [file("a.txt")])
        #expect(
            machine.handle(.confirm)
                == [.perform([.save(work, name: bytes("a.txt"), isConfirmed: false)])])
        _ = machine.handle(.refused("there is one already"))
        // Of another name nothing was said.
        _ = machine.handle(.name(bytes("b.txt")))
        #expect(
            machine.handle(.confirm)
                == [.perform([.save(work, name: bytes("b.txt"), isConfirmed: false)])])
        _ = machine.handle(.refused("there is one already"))
        #expect(
            machine.handle(.confirm)
                == [.perform([.save(work, name: bytes("b.txt"), isConfirmed: true)])])
    }

    @Test func choicesAreReadFromTheirTextAndChosenFromWhatThereIs() throws {
        let encoding = try #require(PickerChoice("Encoding\t UTF\t*Latin"))
        #expect(encoding == PickerChoice(label: "Encoding", options: ["UTF", "Latin"], initial: 1))
        let flag = try #require(PickerChoice("Read only\t*"))
        #expect(flag.isFlag && flag.initial == 1 && flag.names == ["no", "yes"])
        #expect(PickerChoice("Read only")?.initial == 0)
        for text in ["", "\tx", "Label\tUTF"] { #expect(PickerChoice(text) == nil, "\(text)") }
        var request = PickerRequest(.open)
        request.choices = [encoding, flag]
        var machine = shown(request, [file("a.txt")])
        #expect(machine.chosen == [1, 1])
        for (choice, option) in [(0, 0), (1, 2), (2, 0), (-1, 0), (0, -1)] {
            #expect(machine.handle(.choose(choice: choice, option: option)) == [])
        }
        #expect(machine.chosen == [0, 1])
    }

    /// Such a type admits nothing, and so a list of folders was all that people were shown.
    @Test func aTypeThatNothingCanHaveIsRefused() {
        for text in ["", "*.", "a*", "?.txt", "*.t?t", "[ab].txt"] {
            #expect(PickerRequest.problem(withType: text) != nil, "\(text)")
        }
        for text in ["*", "*.*", "*/*", "image/*", "image/png", "*.txt", "*.tar.gz", "public.text"] {
            #expect(PickerRequest.problem(withType: text) == nil, "\(text)")
        }
    }

    /// A document that a provider's page named where a place was asked for confirmed the folder
    /// that was shown: sources were moved there, or the folder was given away, by nobody's word.
    @Test func whatAPageNamesConfirmsNothingElse() throws {
        for mode in PickerRequest.Mode.allCases {
            for picksFolders in [false, true] {
                var request = PickerRequest(mode)
                request.picksFolders = picksFolders
                request.sources = [.init(path: bytes("/tmp/x"))]
                let wantsFolder = request.picksPlace || picksFolders
                let (fits, other) =
                    wantsFolder
                    ? (file("docs", "folder"), file("a.txt")) : (file("a.txt"), file("docs", "folder"))
                let refusal = #expect(throws: PromiseError.self) {
                    try request.event(naming: other)
                }
                #expect(refusal?.exitStatus == 1)
                let event = try request.event(naming: fits)
                #expect(event == (request.picksPlace ? .visit(fits.asFolder) : .confirmItem(fits)))
                // Nothing comes of a place before the person confirms it.
                var machine = shown(request, [fits, other])
                for action in machine.handle(event) {
                    guard case .perform(let wanted) = action else { continue }
                    #expect(!request.picksPlace && wanted.count == 1)
                }
            }
        }
    }
}
