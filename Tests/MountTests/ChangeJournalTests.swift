import Testing

extension MountSuites {
    /// The journal says whose it is, and enough to follow everything by it alone.
    @Suite struct ChangeJournalTests {
        private static let changes = """
            last() { "$P" changes "$M" --since 0 --json | tail -1 | grep -o '"sequence":[0-9]*' | cut -d: -f2; }

            """

        @Test(.timeLimit(.minutes(2))) func aNumberOfAnotherJournalIsRefused() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    Self.changes + """
                        echo a > "$M/a"; "$P" changes "$M" --since 0 --json > "$T/all"; head -1 "$T/all" > "$T/head"
                        journal=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["journal"])' "$T/head")
                        [ -n "$journal" ]; grep -q '"isIncomplete":false' "$T/head"
                        "$P" changes "$M" --since 1 --journal "$journal" > /dev/null
                        "$P" changes "$M" --since 1 --journal other 2> "$T/said" && exit 1 || [ $? = 6 ]
                        grep -q "of another journal" "$T/said"
                        "$P" changes "$M" --since $(($(last) + 1000)) 2> /dev/null && exit 1 || [ $? = 6 ]
                        """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aRenameHasBothNamesAndASaveIsOneDocument() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    Self.changes + """
                        echo a > "$M/a"; mkdir "$M/d"; n=$(printf 'ctl\\001\\\\x'); echo b > "$M/document"; "$P" sync --wait "$M"
                        since=$(last); inode=$(stat -c %i "$M/document")
                        mv "$M/a" "$M/d/$n"; echo c > "$M/.draft"; mv "$M/.draft" "$M/document"
                        "$P" changes "$M" --since "$since" --json > "$T/changes"
                        python3 - "$T/changes" "$inode" <<'END'
                        import json, sys
                        changes = [json.loads(line) for line in open(sys.argv[1])][1:]
                        moves = [c for c in changes if c["kind"] == "moved" and "oldName" in c]
                        assert [(c["oldNameBytes"], c["nameBytes"]) for c in moves] == [("a", "ctl%01%5Cx")], moves
                        saves = [c for c in changes if c["kind"] == "modified" and c["name"] == "document"]
                        assert any(c.get("oldNode") == int(sys.argv[2]) for c in saves), changes
                        gone = [c for c in changes if c["kind"] == "deleted"]
                        assert gone and all("path" not in c for c in gone), gone
                        END
                        """)
            }
        }

        /// A hard link's were another name's.
        @Test(.timeLimit(.minutes(2))) func valuesAreThoseOfTheNameThatIsAskedFor() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    mkdir "$M/d"; echo a > "$M/first.txt"; ln "$M/first.txt" "$M/d/second.png"
                    for p in first.txt d/second.png; do
                        "$P" info --key kMDItemFSName --key kMDItemPath --key kMDItemContentType "$M/$p" --json > "$T/values"
                        grep -q "\\"kMDItemPath\\":\\"/$p\\"" "$T/values"; "$P" info --json "$M/$p" > "$T/info"
                        grep -q "\\"pathBytes\\":\\"/$p\\"" "$T/info"; grep -q "\\"kMDItemFSName\\":\\"${p##*/}\\"" "$T/info"
                    done
                    PYTHONPATH="$R/clients/python" python3 - "$M/d/second.png" <<'END'
                    import sys, promisefs
                    domain, path = promisefs.locate(sys.argv[1])
                    item = domain.values([path])["items"][0]
                    assert item["values"]["kMDItemContentType"] == "public.png" and item["pathBytes"] == "/d/second.png", item
                    assert domain.information(path)["values"] == item["values"]
                    END
                    """)
            }
        }

        /// `watch --json` said how it looks, and no more.
        @Test(.timeLimit(.minutes(2))) func everyNameInAnAnswerHasItsBytes() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    a=$(printf 'odd\\001\\377'); echo 1 > "$M/$a"; mkdir "$M/d"
                    "$P" watch --json "$M" > "$T/told" & one=$!; within 10 'grep -q presenting "$T/told"'
                    mv "$M/$a" "$M/d/$a"
                    within 10 'grep -q "\\"pathBytes\\":\\"/d/odd%01%FF\\"" "$T/told"'
                    grep -q '"oldPathBytes":"/odd%01%FF"' "$T/told"; kill $one; wait $one || true
                    python3 - "$R/docs/openapi.yaml" <<'END'
                    import re, sys
                    schemas, fields = {}, None
                    for line in open(sys.argv[1]).read().split("  schemas:", 1)[1].split("\\n"):
                        if schema := re.fullmatch(r"    (\\w+):", line):
                            fields = schemas[schema[1]] = []
                        elif field := re.match(r"        (\\w+):", line):
                            fields.append(field[1])
                    # What is asked for is bytes; and these are names of people and domains.
                    texts = {("ContainerDocument", "name"), ("StatusDocument", "name"), ("PresenterDocument", "path")}
                    missing = [(schema, field) for schema, fields in schemas.items() for field in fields
                               if re.search("(p|P)ath$|(n|N)ame$", field) and field + "Bytes" not in fields
                               and not re.search("Request$|Passing$|ClaimItem", schema) and (schema, field) not in texts]
                    assert not missing and len(schemas) > 60, missing
                    END
                    """)
            }
        }

        /// A name with a backslash and one with the character that it stands for were shown, and asked for, alike.
        @Test(.timeLimit(.minutes(2))) func namesOfOddCharactersAreToldApart() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    a=$(printf 'odd\\001name'); b='odd\\x01name'; c=$(printf 'odd\\377name'); echo 1 > "$M/$a"; echo 2 > "$M/$b"
                    echo 3 > "$M/$c"
                    one() { [ "$("$P" find "$M" "$1" --json | wc -l)" = 1 ]; }
                    one 'promisefs.nameBytes == "odd%01name"'; one 'promisefs.nameBytes == "odd%5Cx01name"'
                    one 'promisefs.pathBytes == "/odd%01name"'; one 'promisefs.nameBytes == "odd%FFname"'
                    "$P" find "$M" 'promisefs.nameBytes BEGINSWITH "odd%01"' --json --attribute promisefs.nameBytes > "$T/found"
                    grep -q '"promisefs.nameBytes":"odd%01name"' "$T/found"
                    """)
            }
        }
    }
}
