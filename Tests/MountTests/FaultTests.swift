import Testing

extension MountSuites {
    /// The provider is away, slow or silent: local work goes on, the rest fails in time and with the documented errno.
    @Suite struct FaultTests {
        private func options(_ arguments: [String] = []) -> MountedDomain.Options {
            var options = MountedDomain.Options()
            options.arguments = arguments
            options.prepare = """
                mkdir -p "$C/known" "$C/unknown/below"
                for n in 1 2 3 4 5 6; do head -c 50000 /dev/urandom > "$C/known/$n"; done; echo x > "$C/unknown/below/x"
                """
            return options
        }

        /// > Writes go to the local disk and never wait for the provider.
        /// > An unlisted folder must be listed before a name in it is looked up, made or removed.
        @Test(.timeLimit(.minutes(4))) func offlineLocalWorkGoesOnAndTheRestFailsAtOnce() async throws {
            try await MountedDomain.with(options()) { domain in
                try await domain.shell("ls -l \"$M\" \"$M/known\" > /dev/null; cat \"$M/known/1\" > /dev/null")
                try domain.setFaults(["offline=true"])
                try await domain.shell(
                    """
                    ls -l "$M/known" > /dev/null; cmp "$M/known/1" "$C/known/1"
                    echo local > "$M/new"; mkdir "$M/folder"; mv "$M/known/2" "$M/folder/two"; rm "$M/known/3"
                    echo edited >> "$M/known/1"; echo overwritten > "$M/known/5"; chmod 600 "$M/known/6"
                    """, seconds: 10)
                let refused = try await domain.shell("cat \"$M/known/4\"", status: 1)
                // Long before the request deadline, which is half a minute.
                #expect(refused.error.contains("Network is down") && refused.elapsed < .seconds(20))
                let unlisted = try await domain.shell("ls \"$M/unknown\"", status: 2)
                #expect(unlisted.error.contains("Network is down") && unlisted.elapsed < .seconds(20))
                let fetched = try await domain.shell("\"$P\" fetch \"$M/known/4\"", status: 4)
                #expect(fetched.error.split(separator: "\n").count == 1)
                var status = try await domain.status()
                #expect(status.pending > 0 && status.connection == "offline")
                try await domain.shell("[ ! -e \"$C/new\" ]; [ -e \"$C/known/2\" ]")

                try domain.setFaults([])
                try await domain.shell(
                    "within 60 '[ -e \"$C/new\" ] && [ -e \"$C/folder/two\" ] && [ ! -e \"$C/known/3\" ]'", seconds: 70)
                try await domain.synchronize()
                status = try await domain.status()
                #expect(status.pending == 0 && status.connection == "online")
                try await domain.expectProviderEqualsMount()
            }
        }

        /// It was said to be away, as its answer took longer than half a second.
        @Test(.timeLimit(.minutes(2))) func aSyncWaitsForAProviderThatIsBackAndSlow() async throws {
            try await MountedDomain.with(options()) { domain in
                try await domain.shell("ls -l \"$M\" > /dev/null")
                try domain.setFaults(["offline=true"])
                try await domain.shell(
                    "echo new > \"$M/new\"; within 20 '\"$P\" status \"$M\" | grep -q offline'", seconds: 30)
                try domain.setFaults(["delay=1500ms"])
                try await domain.synchronize()
                try await domain.shell("cmp \"$M/new\" \"$C/new\"")
            }
        }

        /// Half a content that calls itself whole, and a version that is always another: programs see an error, and later all.
        @Test(.timeLimit(.minutes(3))) func aProviderThatLiesAboutContentIsNotBelieved() async throws {
            try await MountedDomain.with(options(["--request-deadline", "5s"])) { domain in
                try await domain.shell("ls -l \"$M\" \"$M/known\" > /dev/null")
                for (name, fault, message) in [("1", "short", "Input/output error"), ("2", "stale", "Stale file handle")] {
                    try domain.setFaults(["\(fault)=true"])
                    let refused = try await domain.shell("cat \"$M/known/\(name)\" > \"$T/out\"", seconds: 30, status: 1)
                    #expect(refused.error.contains(message))
                    let why = "\"$P\" info --key NSMetadataUbiquitousItemDownloadingErrorKey \"$M/known/\(name)\""
                    #expect(try await domain.shell(why).text.contains("DownloadingErrorKey"))
                    try domain.setFaults([])
                    try await domain.shell("within 20 'cmp \"$M/known/\(name)\" \"$C/known/\(name)\"'", seconds: 40)
                    #expect(try await !domain.shell(why).text.contains("DownloadingErrorKey"), "it came")
                }
                try await domain.expectProviderEqualsMount()
            }
        }

        /// It was begun anew for each program, and each ran into the same deadline.
        @Test(.timeLimit(.minutes(3))) func aSmallFileOnASlowLineIsThereInTheEnd() async throws {
            var options = options(["--request-deadline", "2s"])
            options.prepare = "head -c 1000000 /dev/urandom > \"$C/small\""
            try await MountedDomain.with(options) { domain in
                try domain.setFaults(["bandwidth=150000"])
                let late = try await domain.shell("cat \"$M/small\" > \"$T/out\"", seconds: 30, status: 1)
                #expect(late.error.contains("Connection timed out"))
                try await domain.shell("within 60 'cmp \"$M/small\" \"$C/small\"'", seconds: 90)
                #expect(try await domain.status().bytesFetched < 1_500_000)
            }
        }

        /// > A waiting open or read ends with `EINTR` by a signal, with `ETIMEDOUT` after the request deadline (30 s,
        @Test(.timeLimit(.minutes(3))) func aSilentProviderMeansATimeoutWithinTheDeadline() async throws {
            try await MountedDomain.with(options(["--request-deadline", "3s"])) { domain in
                try await domain.shell("ls -l \"$M\" \"$M/known\" > /dev/null")
                try domain.setFaults(["hang=true"])
                let late = try await domain.shell(
                    """
                    cat "$M/known/1" 2> "$T/err" & reader=$!
                    # What would wait for the provider fails, too.
                    ls -l "$M/known" > /dev/null; echo local > "$M/new"; cat "$M/new"; mv "$M/known/2" "$M/known/two"
                    not wait $reader; cat "$T/err" >&2
                    """, seconds: 30)
                #expect(late.error.contains("Connection timed out"))
                #expect(late.elapsed > .seconds(2) && late.elapsed < .seconds(20))
                let listing = try await domain.shell("ls \"$M/unknown\"", seconds: 20, status: 2)
                #expect(listing.error.contains("Connection timed out"))
                try domain.setFaults([])
                try await domain.shell(
                    "within 30 'cmp -s \"$M/known/1\" \"$C/known/1\"'; cat \"$M/unknown/below/x\"", seconds: 60)
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
            }
        }

        @Test(.timeLimit(.minutes(3))) func anOpenOfASilentProvidersFileCanBeInterrupted() async throws {
            try await MountedDomain.with(options()) { domain in
                try await domain.shell("ls -l \"$M/known\" > /dev/null")
                try domain.setFaults(["hang=true"])
                // The request deadline is half a minute.
                let stopped = try await domain.shell("timeout -s INT 1 cat \"$M/known/1\"", status: 124)
                #expect(stopped.elapsed < .seconds(20))
                let killed = try await domain.shell("timeout -s KILL 1 cat \"$M/known/1\"", status: 137)
                #expect(killed.elapsed < .seconds(20))
                let listing = try await domain.shell("timeout -s INT 1 ls \"$M/unknown\"", status: 124)
                #expect(listing.elapsed < .seconds(20))
            }
        }

        @Test(.timeLimit(.minutes(4))) func aSlowProviderSlowsNobodyWhoDoesNotNeedIt() async throws {
            let delay = Machine.isFullScale ? 10 : 2
            try await MountedDomain.with(options()) { domain in
                try await domain.shell("ls -l \"$M/known\" > /dev/null")
                try domain.setFaults(["delay=\(delay)s"])
                let readers = try await domain.shell(
                    """
                    for n in 1 2 3 4; do cmp "$M/known/$n" "$C/known/$n" & pids="${pids:-} $!"; done
                    # This machine may be held up for some of the times.
                    work() {
                        timeout 1 sh -c 'for n in 1 2 3 4 5 6 7 8; do echo $n > "$M/local $n"; done; ls -l "$M/known" > /dev/null'
                    }
                    within 20 work
                    for pid in $pids; do wait $pid; done
                    """, seconds: 60)
                #expect(readers.elapsed >= .seconds(delay) && readers.elapsed < .seconds(delay * 4), "four files at a time")
                try domain.setFaults([])
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
            }
        }

        /// > `promisefs pending --step` carries out one piece of it, and holds the rest until the next `promisefs sync`.
        @Test(.timeLimit(.minutes(2))) func pendingWorkGoesOneStepAtATime() async throws {
            try await MountedDomain.with(options()) { domain in
                try await domain.shell("\"$P\" pending --step \"$M\" | grep -q 'nothing that can be done'")
                try await domain.shell("echo a > \"$M/a\"; mkdir \"$M/d\"; echo b > \"$M/d/b\"")
                for (there, missing) in [("a", "d"), ("d", "d/b"), ("d/b", "nothing")] {
                    try await domain.shell("\"$P\" pending --step \"$M\" | grep -q 'done: create'")
                    try await domain.shell("[ -e \"$C/\(there)\" ] && [ ! -e \"$C/\(missing)\" ]")
                }
                try domain.setFaults(["offline=true", "only=modify"])
                try await domain.shell("echo more >> \"$M/a\"; sleep 2; [ \"$(cat \"$C/a\")\" = a ]")
                try await domain.shell("! \"$P\" pending --step \"$M\" 2> \"$T/said\"; grep -q 'was not done' \"$T/said\"")
                try domain.setFaults([])
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
            }
        }

        /// > Between `promisefs pause` and `promisefs resume` nothing is sent and nothing is fetched by itself
        @Test(.timeLimit(.minutes(2))) func whatIsPausedSendsNothingAlsoAfterTheNextMount() async throws {
            try await MountedDomain.with(options()) { domain in
                let said = try await domain.shell(
                    """
                    echo theirs > "$C/theirs"; "$P" pause "$M" > /dev/null; echo ours > "$M/ours"
                    "$P" sync --wait "$M" 2> "$T/said" || echo "ended with $?"
                    grep -q 'paused' "$T/said"; cat "$M/theirs"; [ ! -e "$C/ours" ]
                    "$P" unmount "$M" 2> /dev/null || echo "ended with $?"
                    """)
                #expect(said.output == "ended with 7\ntheirs\nended with 7\n")
                try await domain.remount()
                try await domain.shell(
                    """
                    "$P" status "$M" | grep -q 'paused since'; not "$P" sync --wait "$M" 2> /dev/null; [ ! -e "$C/ours" ]
                    "$P" resume "$M" | grep -q 'goes on'; "$P" sync --wait "$M"; [ "$(cat "$C/ours")" = ours ]
                    "$P" status "$M" > "$T/status"; not grep -q 'paused' "$T/status"
                    """)
            }
        }

        /// > What failed is kept, shown by `promisefs pending`, and repeated:
        @Test(.timeLimit(.minutes(3))) func failingUploadsAreKeptShownAndRetried() async throws {
            try await MountedDomain.with(options()) { domain in
                try domain.setFaults(["offline=true", "only=create"])
                try await domain.shell("echo a > \"$M/a\"")
                try await domain.shell("within 20 '\"$P\" pending --json \"$M\" | grep -q \"\\\"error\\\"\"'", seconds: 30)
                #expect(try await domain.shell("\"$P\" pending \"$M\"").output.contains("a"))
                try await domain.shell("\"$P\" unmount --wait --timeout 1s \"$M\"", status: nil)
                if domain.daemonProcesses().isEmpty { try await domain.remount() }
                try domain.setFaults([])
                try await domain.shell("within 60 '[ \"$(cat \"$C/a\")\" = a ]'", seconds: 70)
            }
        }

        /// > Where the attribute `user.promisefs.fsync` of a folder is `provider`
        @Test(.timeLimit(.minutes(2))) func fsyncReachesTheProviderWhereTheFolderSaysSo() async throws {
            var options = MountedDomain.Options()
            options.uploadDelay = "1h"
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    mkdir $M/d $M/d/e; setfattr -n user.promisefs.fsync -v provider $M/d
                    [ "$(getfattr --only-values -n user.promisefs.fsync $M/d/e)" = provider ]
                    [ "$(getfattr --only-values -n user.promisefs.fsync $M)" = local ]; [ -z "$(getfattr $M/d/e)" ]
                    cat > $T/save.py << 'END'
                    import os, sys
                    mount, cloud = sys.argv[1:]
                    file = os.open(mount + "/d/e/file", os.O_RDWR | os.O_CREAT, 0o644)
                    for text in (b"one", b"two", b"three"):
                        os.pwrite(file, text, 0)
                        os.fsync(file)
                        assert open(cloud + "/d/e/file", "rb").read() == text, text
                    os.rename(mount + "/d/e/file", mount + "/d/e/other")
                    folder = os.open(mount + "/d/e", os.O_RDONLY)
                    os.fsync(folder)
                    assert os.listdir(cloud + "/d/e") == ["other"]
                    END
                    python3 $T/save.py $M $C; echo x > $M/plain; sync $M/plain; [ ! -e $C/plain ]
                    """)
                try domain.setFaults(["offline=true"])
                let refused = try await domain.shell("echo four >> $M/d/e/other; sync $M/d/e/other", status: 1)
                #expect(refused.error.contains("Network is down") || refused.error.contains("timed out"))
                try await domain.shell("grep -q four $M/d/e/other")
            }
        }
    }
}
