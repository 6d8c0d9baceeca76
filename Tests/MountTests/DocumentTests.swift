import Foundation
import PromiseKit
import Synchronization
import Testing

extension MountSuites {
    /// PromiseKit's `Document` in a real mount, with other programs beside it.
    @Suite struct DocumentTests {
        private struct Text: DocumentContents {
            /// As where there is no room.
            static let isUnsavable = Atomic<Bool>(false)
            var text = ""

            init() {}
            init(bytes: [UInt8]) throws { text = String(decoding: bytes, as: UTF8.self) }
            func bytes() throws -> [UInt8] {
                if Text.isUnsavable.load(ordering: .relaxed), text == "mine\n" { throw CancellationError() }
                return Array(text.utf8)
            }
        }

        private func client(_ domain: MountedDomain) -> PromiseClient {
            PromiseClient(socketPath: domain.root + "/run/promisefs/\(domain.domainName).sock", domain: domain.domainName)
        }

        private func document(
            _ domain: MountedDomain, _ name: String, autosaveDelay: Duration = .seconds(3600)
        ) throws -> Document<Text> {
            let location = try Location.of(Array((domain.mount + "/" + name).utf8), in: MountTable.current())
            return Document(location, client: client(domain), contents: Text(), autosaveDelay: autosaveDelay)
        }

        private func eventually(_ what: String, _ condition: () async throws -> Bool) async throws {
            for _ in 0..<1500 {
                if try await condition() { return }
                try await Task.sleep(for: .milliseconds(20))
            }
            Issue.record("not in time: \(what)")
        }

        private func isNormal(_ note: Document<Text>, with text: String) async -> Bool {
            let (shown, state) = (await note.contents.text, await note.state)
            return shown == text && state == []
        }

        @Test(.timeLimit(.minutes(2))) func aDocumentSavesItselfAndStaysTheSameItem() async throws {
            try await MountedDomain.with { domain in
                let note = try document(domain, "note.txt", autosaveDelay: .milliseconds(50))
                await #expect(throws: PromiseError.self) { try await note.edit { $0.text = "x" } }
                try await note.save(.creating)
                #expect(await note.state == [])
                await #expect(throws: PromiseError.self) { try await document(domain, "note.txt").save(.creating) }
                try await domain.synchronize()
                let identifier = "getfattr --only-values -n user.promisefs.identifier \"$M/note.txt\""
                let before = try await domain.shell("setfattr -n user.tag -v red \"$M/note.txt\"; \(identifier)").text
                try await note.edit { $0.text = "one\n" }
                #expect(await note.hasUnsavedChanges)
                try await eventually("saved by itself") { await !note.hasUnsavedChanges }
                try await domain.shell(
                    "[ \"$(cat \"$M/note.txt\")\" = one ]; [ \"$(getfattr --only-values -n user.tag \"$M/note.txt\")\" = red ]")
                try await domain.synchronize()
                #expect(try await domain.shell(identifier).text == before)
                try await domain.shell(
                    "[ \"$(ls -A \"$C\" | grep -v promisefs)\" = note.txt ]; [ \"$(cat \"$C/note.txt\")\" = one ]")
                try await note.edit { $0.text = "two\n" }
                try await note.close()
                try await domain.shell("[ \"$(cat \"$M/note.txt\")\" = two ]")
                #expect(await note.state == .closed)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aDocumentSavesBeforeReadersLetsWritersInAndFollowsItsFile() async throws {
            var options = MountedDomain.Options()
            options.prepare = "echo old > \"$C/note\""
            try await MountedDomain.with(options) { domain in
                let note = try document(domain, "note")
                try await note.open()
                try await note.edit { $0.text = "mine\n" }
                try await domain.shell("[ \"$(\"$P\" coordinate read \"$M/note\" -- cat \"$M/note\")\" = mine ]")
                #expect(await !note.hasUnsavedChanges)
                try await domain.shell("\"$P\" coordinate write \"$M/note\" -- sh -c 'echo theirs > \"$1\"' sh \"$M/note\"")
                try await eventually("read again") { await isNormal(note, with: "theirs\n") }
                try await domain.shell("mkdir \"$M/folder\"; mv \"$M/note\" \"$M/folder/moved\"")
                // Whoever moves it keeps others from editing for that moment.
                try await eventually("followed") {
                    guard await isNormal(note, with: "theirs\n") else { return false }
                    return await note.location.path == Array("folder/moved".utf8)
                }
                try await note.edit { $0.text += "more\n" }
                try await note.save()
                try await domain.shell("[ \"$(cat \"$M/folder/moved\" | paste -sd' ')\" = 'theirs more' ]")

                // A program that knows nothing of it writes while there are edits: neither side is lost without being asked.
                try await note.edit { $0.text = "unsaved\n" }
                try await domain.shell("echo unaware > \"$M/folder/moved\"")
                try await eventually("the edits are kept") { await note.state.contains(.savingError) }
                let refusal = await #expect(throws: PromiseError.self) { try await note.save() }
                #expect(refusal?.exitStatus == 6)
                #expect(await note.contents.text == "unsaved\n")
                try await note.revert()
                #expect(await note.contents.text == "unaware\n")
                #expect(await note.state == [])
                try await domain.shell(
                    "F=\"$M/folder/moved\"; \"$P\" coordinate write --option forDeleting \"$F\" -- rm \"$F\"")
                try await eventually("closed") { await note.state.contains(.closed) }
                var seen: [Document<Text>.State] = []
                for await state in note.stateChanges {
                    seen.append(state)
                    if state.contains(.closed) { break }
                }
                #expect(seen.contains(.editingDisabled), "\(seen)")
            }
        }

        /// Others were let in as if it had saved.
        /// An edit that was made while closing saved the one before was gone.
        @Test(.timeLimit(.minutes(2))) func whatIsEditedWhileADocumentClosesIsSaved() async throws {
            try await MountedDomain.with { domain in
                for round in 0..<5 {
                    let note = try document(domain, "note \(round)")
                    try await note.save(.creating)
                    try await note.edit { $0.text = "0" }
                    async let closing: Void = note.close()
                    var last = 0
                    for number in 1...100 where (try? await note.edit({ $0.text = "\(number)" })) != nil {
                        last = number
                        try await Task.sleep(for: .milliseconds(1))
                    }
                    try await closing
                    #expect(await !note.hasUnsavedChanges)
                    #expect(try await domain.shell("cat \"$M/note \(round)\"").text == "\(last)")
                }
            }
        }

        /// They were written beside themselves under one name, so that one had the text of the other.
        @Test(.timeLimit(.minutes(2))) func documentsWhoseLongNamesBeginAlikeKeepTheirTexts() async throws {
            try await MountedDomain.with { domain in
                let name = String(repeating: "n", count: 210)
                let notes = [try document(domain, name + "a"), try document(domain, name + "b")]
                for note in notes { try await note.save(.creating) }
                for round in 0..<30 {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for (number, note) in notes.enumerated() {
                            group.addTask {
                                try await note.edit { $0.text = String(repeating: "\(number)", count: 100_000 + round) }
                                try await note.save()
                            }
                        }
                        try await group.waitForAll()
                    }
                }
                try await domain.shell("[ $(tr -d 0 < $M/\(name)a | wc -c) = 0 ]; [ $(tr -d 1 < $M/\(name)b | wc -c) = 0 ]")
            }
        }

        @Test(.timeLimit(.minutes(2))) func aDocumentThatCannotSaveSaysSoAndTriesAgain() async throws {
            var options = MountedDomain.Options()
            options.prepare = "echo old > \"$C/note\""
            try await MountedDomain.with(options) { domain in
                let note = try document(domain, "note", autosaveDelay: .milliseconds(100))
                try await note.open()
                Text.isUnsavable.store(true, ordering: .relaxed)
                defer { Text.isUnsavable.store(false, ordering: .relaxed) }
                try await note.edit { $0.text = "mine\n" }
                try await eventually("it could not save") { await note.state.contains(.savingError) }
                try await domain.shell(
                    """
                    "$P" coordinate read "$M/note" -- touch "$T/inside" 2> "$T/said" && exit 1 || true
                    grep -q "could not save" "$T/said"; [ ! -e "$T/inside" ]; [ "$(cat "$M/note")" = old ]
                    """)
                Text.isUnsavable.store(false, ordering: .relaxed)
                try await eventually("saved by itself") { await !note.hasUnsavedChanges }
                #expect(await note.state == [])
                try await domain.shell("[ \"$(cat \"$M/note\")\" = mine ]; \"$P\" coordinate read \"$M/note\" -- true")
                try await note.close()
            }
        }

        /// The link was replaced by the document.
        @Test(.timeLimit(.minutes(2))) func aDocumentThatIsOpenedByALinkLeavesTheLink() async throws {
            var options = MountedDomain.Options()
            options.prepare = "mkdir \"$C/folder\"; echo old > \"$C/folder/note\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ln -s folder/note \"$M/link\"; echo out > \"$T/out\"; ln -s \"$T/out\" \"$M/away\"")
                for (name, place) in [("link", "$M/folder/note"), ("away", "$T/out")] {
                    let note = try document(domain, name)
                    try await note.open()
                    try await note.edit { $0.text = "new\n" }
                    try await note.close()
                    try await domain.shell("[ -L \"$M/\(name)\" ]; [ \"$(cat \"\(place)\")\" = new ]; [ ! -L \"\(place)\" ]")
                }
            }
        }

        @Test(.timeLimit(.minutes(2))) func aDocumentIsInConflictUntilAVersionIsChosen() async throws {
            var options = MountedDomain.Options()
            options.prepare = "echo old > \"$C/note\""
            try await MountedDomain.with(options) { domain in
                let note = try document(domain, "note")
                try await note.open()
                try domain.setFaults(["offline=true"])
                try await note.edit { $0.text = "mine\n" }
                try await note.save()
                try await domain.shell("echo theirs > \"$C/note\"")
                try domain.setFaults([])
                try await eventually("in conflict") { await note.state.contains(.inConflict) }
                try await eventually("shows theirs") { await note.contents.text == "theirs\n" }
                let versions = FileVersions(client(domain))
                let found = try await versions.unresolved(of: Array("note".utf8))
                try #require(found.count == 1)
                try await versions.replaceItem(at: Array("note".utf8), with: found[0])
                try await eventually("normal again") { await isNormal(note, with: "mine\n") }
                try await note.close()
                try await domain.synchronize()
                try await domain.shell("[ \"$(cat \"$C/note\")\" = mine ]; [ \"$(ls -A \"$M\")\" = note ]")
            }
        }

        /// It showed, and wrote to, what had its name then.
        @Test(.timeLimit(.minutes(2))) func aDocumentThatMovedWhileTheDaemonWasReplacedIsFollowed() async throws {
            var options = MountedDomain.Options()
            options.prepare = "echo mine > \"$C/note\"; echo going > \"$C/gone\""
            try await MountedDomain.with(options) { domain in
                let (note, gone) = (try document(domain, "note"), try document(domain, "gone"))
                try await note.open()
                try await gone.open()
                try domain.killDaemon()
                try await domain.shell(
                    """
                    mv "$M/note" "$M/moved"; echo another > "$M/note"; mv "$M/gone" "$T/out"; mkdir "$M/gone"
                    """)
                try await eventually("followed") { await note.location.path == Array("moved".utf8) }
                try await eventually("closed") { await gone.state.contains(.closed) }
                try await note.edit { $0.text += "more\n" }
                try await note.close()
                try await domain.shell(
                    """
                    [ "$(paste -sd' ' "$M/moved")" = 'mine more' ]; [ "$(cat "$M/note")" = another ]; [ -d "$M/gone" ]
                    """)
            }
        }

        /// It was taken for its first name when it was opened, and one that had gone could not be made again.
        @Test(.timeLimit(.minutes(2))) func aDocumentIsTheNameThatItWasOpenedByAndMayBeMadeAnew() async throws {
            var options = MountedDomain.Options()
            options.prepare = "echo old > \"$C/note\"; echo going > \"$C/gone\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ln \"$M/note\" \"$M/second\"")
                let (second, gone) = (try document(domain, "second"), try document(domain, "gone"))
                try await second.open()
                try domain.killDaemon()
                try await domain.shell("within 10 'cat \"$M/note\"'; sleep 2")
                try await second.edit { $0.text += "more\n" }
                try await second.close()
                try await domain.shell(
                    "[ \"$(paste -sd' ' \"$M/second\")\" = 'old more' ]; [ \"$(cat \"$M/note\")\" = old ]")
                try await gone.open()
                try await domain.shell("rm \"$M/gone\"")
                try await eventually("closed") { await gone.state.contains(.closed) }
                try await gone.save(.creating)
                #expect(await gone.state == [])
                try await gone.close()
                try await domain.shell("[ \"$(cat \"$M/gone\")\" = going ]")
            }
        }

        /// Two applications, of which each is a process. A document showed what another one had left at its place while the
        /// daemon was replaced, and what was edited while it read its file again went.
        /// The daemon died while a document was saved, and what others had written by the time it was put in its place was
        /// written over: the claim that had kept them out had ended. The save is held up where the new file is whole.
        @Test(.timeLimit(.minutes(3))) func aSaveThatOutlivesItsClaimWritesOverNobody() async throws {
            try await MountedDomain.with(MountedDomain.Options(arguments: ["--poll-interval", "300ms"])) { domain in
                try await domain.shell(
                    """
                    python3 - "$M/doc.txt" "$C/doc.txt" "$(dirname "$(realpath "$P")")/document-program" <<'END'
                    import glob, json, os, signal, subprocess, sys, time
                    path, cloud, program = sys.argv[1:]
                    def wait(what, condition):
                        end = time.monotonic() + 40
                        while not condition():
                            assert time.monotonic() < end, what
                            time.sleep(0.05)
                    with open(path, "w") as file: file.write("document doc\\n" + "x" * (8 << 20) + "\\n")
                    subprocess.run([os.environ["P"], "sync", "--wait", path], check=True, stdout=subprocess.DEVNULL)
                    child = subprocess.Popen([program, "one"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                    child.stdin.write(f"open doc {path}\\n"); child.stdin.flush()
                    drafts = f"{os.path.dirname(path)}/.doc.txt-{child.pid}-*~"
                    for attempt in range(200):
                        wait("nothing is saved", lambda: glob.glob(drafts))
                        child.send_signal(signal.SIGSTOP)
                        time.sleep(0.05)
                        if glob.glob(drafts): break
                        child.send_signal(signal.SIGCONT)
                    else:
                        sys.exit("no save was caught in its middle")
                    status = subprocess.check_output([os.environ["P"], "status", "--json", os.path.dirname(path)])
                    os.kill(json.loads(status.splitlines()[0])["processID"], signal.SIGKILL)
                    # What was sent already, as a whole; and then others add a line.
                    with open(cloud) as file: text = file.read()
                    with open(cloud + ".new", "w") as file: file.write(text + "doc/other/0/1\\n")
                    os.rename(cloud + ".new", cloud)
                    def followed():
                        try:
                            with open(path) as file: return "doc/other/0/1" in file.read()
                        except OSError:
                            return False
                    wait("what others wrote is not here", followed)
                    child.send_signal(signal.SIGCONT)
                    child.stdin.write("quit\\n"); child.stdin.flush()
                    child.wait(timeout=60)
                    found = [name for name in os.listdir(os.path.dirname(path)) if not name.startswith(".")
                             and "doc/other/0/1" in open(os.path.join(os.path.dirname(path), name)).read()]
                    assert found, "what others wrote is gone"
                    END
                    """, seconds: 150)
            }
        }

        /// The save made another item where the document had been, and every later one failed. It is
        /// held up where the new file is whole, for longer than others wait for a claim.
        @Test(.timeLimit(.minutes(3)), arguments: ["move", "remove"])
        func aDocumentThatOthersMoveOrRemoveWhileItIsSavedStaysOne(_ what: String) async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    python3 - "$M" "$(dirname "$(realpath "$P")")/document-program" \(what) <<'END'
                    import os, signal, subprocess, sys, time
                    folder, program, what = sys.argv[1:]
                    path, place = folder + "/doc.txt", folder + "/moved.txt"
                    def wait(what, condition):
                        end = time.monotonic() + 40
                        while not condition():
                            assert time.monotonic() < end, what
                            time.sleep(0.05)
                    def tokens(path):
                        with open(path) as file: return file.read().count("doc/one/")
                    with open(path, "w") as file: file.write("document doc\\n" + "x" * (8 << 20) + "\\n")
                    child = subprocess.Popen([program, "one"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                    child.stdin.write(f"open doc {path}\\n"); child.stdin.flush()
                    def is_saving():
                        names = os.listdir(folder)
                        return any(name.startswith(f".doc.txt-{child.pid}") and name.endswith("~") for name in names)
                    for attempt in range(200):
                        wait("nothing is saved", is_saving)
                        child.send_signal(signal.SIGSTOP)
                        time.sleep(0.05)
                        if is_saving(): break
                        child.send_signal(signal.SIGCONT)
                    else:
                        sys.exit("no save was caught in its middle")
                    if what == "move": os.rename(path, place)
                    else: os.remove(path)
                    child.send_signal(signal.SIGCONT)
                    if what == "move":
                        before = tokens(place)
                        wait("nothing is saved where it is", lambda: tokens(place) > before)
                        child.stdin.write("quit\\n"); child.stdin.flush()
                    assert any(line.startswith("closed doc") for line in child.stdout), "it is not closed"
                    assert not os.path.exists(path), "there is another one where it was"
                    child.stdin.close()
                    child.wait(timeout=60)
                    END
                    """, seconds: 150)
            }
        }

        /// Files are read and written on threads of their own: an actor that waits for one could not even say its state.
        @Test(.timeLimit(.minutes(2))) func aDocumentAnswersWhileItsContentDoesNotCome() async throws {
            var options = MountedDomain.Options()
            options.prepare = "head -c 3000000 /dev/zero | tr '\\0' x > \"$C/note\""
            try await MountedDomain.with(options) { domain in
                let note = try document(domain, "note")
                try await domain.shell("ls \"$M\"")
                // Nobody waits for the end of it: what was begun is carried on when this is taken back.
                try domain.setFaults(["hang=true", "only=fetchContents"])
                let opening = Task { try await note.open() }
                try await eventually("it waits for the content") { note.progress != nil }
                for _ in 0..<50 { #expect(await note.state.contains(.closed)) }
                #expect(note.progress != nil, "it waits still")
                try domain.setFaults([])
                try await opening.value
                #expect(await note.contents.text.utf8.count == 3_000_000)
                try await note.close()
            }
        }

        @Test(.timeLimit(.minutes(5))) func noTextIsLostOrInAnotherDocumentWhateverHappens() async throws {
            let result = try await runShell(
                """
                python3 "$R/scripts/workloads/document-editors.py" --executable "$P" --changes 40 --folder "$PWD"
                """, environment: ["R": Machine.repository, "P": Machine.executable], seconds: 280, scratch: Machine.folder)
            #expect(result.status == 0, "\(result.output)\(result.error)")
        }
    }
}
