import Testing

extension MountSuites {
    /// A live result set is what a fresh query finds, at every quiet moment.
    @Suite struct LiveStateTests {
        /// `start NAME PREDICATE` begins a live query whose events go to `$T/NAME`, `stop` ends all. `equal` waits until each of
        /// them, replayed, gives what a query finds now.
        private static let live = """
            pids=""; predicates=()
            start() {
                : > "$T/$1"; "$P" find "$M" "$2" --live --json > "$T/$1" & pids+=" $!"; predicates+=("$1=$2")
                within 10 'grep -q gathered "$T/'"$1"'"'
            }
            stop() { kill $pids; wait $pids || true; }
            cat > "$T/replay.py" <<'END'
            import json, subprocess, sys
            program, mount, folder, *queries = sys.argv[1:]
            for query in queries:
                name, predicate = query.split("=", 1)
                there = {}
                for line in open(f"{folder}/{name}"):
                    if not line.endswith("\\n"):
                        break
                    event = json.loads(line)
                    kind, item = event["event"], event.get("item")
                    if kind == "added":
                        assert item["id"] not in there, ("told twice", item)
                        there[item["id"]] = item
                    elif kind == "changed":
                        assert there[item["id"]] != item, ("nothing changed", item)
                        there[item["id"]] = item
                    elif kind == "removed":
                        del there[event["id"]]
                    elif kind == "reset":
                        there = {}
                found = subprocess.run([program, "find", mount, predicate, "--json"], check=True, capture_output=True)
                fresh = {}
                for line in found.stdout.splitlines():
                    item = json.loads(line)["item"]
                    fresh[item["id"]] = item
                if there != fresh:
                    stale = [(k, there.get(k), fresh.get(k)) for k in {*there, *fresh} if there.get(k) != fresh.get(k)]
                    sys.exit(f"{name}: {len(stale)} of {len(fresh)} differ: {stale[:2]}")
            END
            equal() { within 20 'python3 "$T/replay.py" "$P" "$M" "$T" "${predicates[@]}"' || {
                python3 "$T/replay.py" "$P" "$M" "$T" "${predicates[@]}"; return 1; }; }

            """

        /// Uploads that began and ended, dates of folders, pins, tags and listings were told late or never.
        @Test(.timeLimit(.minutes(3))) func whatNoCallOnTheMountTellsIsToldToo() async throws {
            var options = MountedDomain.Options()
            options.prepare = """
                mkdir -p "$C/docs/deep" "$C/more"; for n in $(seq 1 40); do echo $n > "$C/docs/$n.txt"; done; echo x > "$C/more/x"
                """
            try await MountedDomain.with(options) { domain in
                try domain.setFaults(["delay=600ms", "only=createItem,modifyItem,create,modify"])
                try await domain.shell(
                    Self.live + """
                        ls "$M/docs" > /dev/null
                        start all TRUEPREDICATE
                        start uploading 'promisefs.state == "uploading"'
                        start busy 'NSMetadataUbiquitousItemIsUploadingKey == YES'
                        start pinned 'promisefs.pin == "pinned"'; start red 'kMDItemUserTags == "red"'
                        start unlisted 'promisefs.kind == "folder" AND promisefs.state == "placeholder"'
                        start dates 'promisefs.kind == "folder" AND kMDItemFSContentChangeDate > "2001-01-01T00:00:00Z"'
                        start errors 'NSMetadataUbiquitousItemUploadingErrorKey != NIL'
                        mkdir "$M/new"; for n in $(seq 1 60); do echo "$n" > "$M/new/$n"; done
                        within 20 'grep -q added "$T/uploading"'; within 20 'grep -q added "$T/busy"'
                        "$P" sync --wait "$M"; equal
                        [ "$(grep -c '"event":"added"' "$T/uploading")" = "$(grep -c '"event":"removed"' "$T/uploading")" ]
                        "$P" pin "$M/docs/1.txt" > /dev/null; setfattr -n user.xdg.tags -v red "$M/docs/2.txt"; equal
                        grep -q added "$T/pinned"; grep -q added "$T/red"
                        setfattr -x user.xdg.tags "$M/docs/2.txt"; "$P" unpin "$M/docs/1.txt" > /dev/null; equal
                        grep -q removed "$T/pinned"; grep -q removed "$T/red"
                        ls "$M/more" "$M/docs/deep" > /dev/null; equal
                        touch -d 2000-01-01 "$M/more"; equal; echo y > "$M/more/y"; equal
                        cat "$M"/docs/*.txt > /dev/null; "$P" evict "$M/docs" > /dev/null; equal
                        for n in 1 2 3; do echo "$n" >> "$M/docs/$n.txt"; mv "$M/docs/$n.txt" "$M/docs/moved-$n"; done
                        rm "$M"/new/*; ln "$M/docs/4.txt" "$M/new/link"; "$P" sync --wait "$M"; equal
                        stop
                        """, seconds: 150)
            }
        }

        /// Events came twice, in another order or not at all, and the journal did not tell the tree.
        @Test(.timeLimit(.minutes(4))) func liveQueriesAndTheJournalFollowEverythingThroughKills() async throws {
            try await run("live-queries.py", "--changes 1500 --queries 30 --kills 3")
        }

        /// The index left out names, and the evaluator folded a pattern before it knew what was escaped.
        @Test(.timeLimit(.minutes(4))) func predicatesFindWhatAnotherEvaluatorFinds() async throws {
            try await run("predicates.py", "--predicates 700")
        }

        /// A claim with two items asked a presenter of both for what the second one wanted only.
        @Test(.timeLimit(.minutes(4))) func claimsHoldOnAMountWhereProgramsKnowNothingAndProcessesDie() async throws {
            try await run("claims-on-a-mount.py", "--cases 1 --seconds 6")
        }

        private func run(_ script: String, _ options: String) async throws {
            let result = try await runShell(
                "python3 \"$R/scripts/workloads/\(script)\" --executable \"$P\" --folder \"$PWD\" \(options)",
                environment: ["R": Machine.repository, "P": Machine.executable], seconds: 230,
                scratch: Machine.folder)
            #expect(result.status == 0, "\(result.output)\(result.error)")
        }
    }
}
