import Foundation
import Testing

extension MountSuites {
    /// Damages of what applications keep: named, mended, and nothing is destroyed by that.
    @Suite struct RecordVerifyTests {
        private static let keep = """
            mkdir -p "$M/projects" "$M/desk"; echo plan > "$M/projects/plan.md"
            "$P" kv set --app com.example.one --domain $D theme dark; "$P" kv set --app com.example.two --domain $D theme light
            "$P" container add --app com.example.one --name One $D; "$P" container add --app com.example.two --name Two $D
            "$P" reference add "$M/projects/plan.md" "$M/desk"; "$P" sync --wait "$M"
            within 10 '"$P" status --json "$M" | grep -q "\\"unsentRecords\\":0"'
            within 10 '[ "$(ls "$C/.promisefs/values" "$C/.promisefs/containers" | grep -c json)" = 4 ]'
            # What a sync began has ended.
            sleep 1

            """

        private static let isThere = """
            [ "$("$P" kv get --app com.example.one --domain $D theme)" = dark ]
            [ "$("$P" kv get --app com.example.two --domain $D theme)" = light ]
            "$P" container list $D | grep -q One; "$P" container list $D | grep -q Two
            [ "$(cat "$M/desk/plan.md")" = plan ]; "$P" verify --provider "$M"

            """

        @Test(.timeLimit(.minutes(2))) func damagedRecordsAreNamedMendedAndKept() async throws {
            try await MountedDomain.with { domain in
                let name = "D=\(domain.domainName)\n"
                try await domain.shell(
                    name + Self.keep
                        + """
                        "$P" unmount "$M"; echo '{"half' > "$S/values/com.example.one.json"
                        sed -i 's/"wasSent":true/"wasSent":7/g' "$S/containers.json"
                        python3 - <<'END'
                        import os, sqlite3
                        index = sqlite3.connect(os.environ["S"] + "/index.sqlite")
                        index.execute("update node set target = cast('promisefs-reference:{\\"sch' as blob) where kind = 2")
                        index.commit()
                        END
                        """)
                let found = try await domain.shell("\"$P\" verify --state-dir \"$S\"", status: 1)
                for sentence in [
                    "the values of com.example.one in ", "are damaged, of com.example.one, com.example.two",
                    "the reference 'desk/plan.md' is damaged",
                ] {
                    #expect(found.output.contains(sentence), "\(found.output)")
                }
                try await domain.shell("\"$P\" verify --repair --state-dir \"$S\"; \"$P\" verify --state-dir \"$S\"")
                try await domain.remount()
                try await domain.shell(
                    name + "within 10 '\"$P\" container list $D | grep -q Two'; " + Self.isThere
                        + """
                        grep -q half "$S/kept/values-com.example.one.json"; grep -q '"wasSent":7' "$S/kept/containers.json"
                        """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aMountedDomainWritesAgainWhatItHasInMemoryAlsoAtTheProvider() async throws {
            try await MountedDomain.with { domain in
                let name = "D=\(domain.domainName)\n"
                try await domain.shell(
                    name + Self.keep
                        + """
                        rm "$S/values/com.example.one.json"
                        echo rot > "$S/containers.json"
                        cd "$C/.promisefs"; echo rot > values/com.example.one.json; rm values/com.example.two.json
                        echo rot > containers/com.example.one.json; echo rot > containers/com.example.stray.json
                        """)
                let found = try await domain.shell("\"$P\" verify --provider \"$M\"", status: 1)
                for sentence in [
                    "the values of com.example.one are missing: there is no",
                    "the values of com.example.two are missing at the provider", "the records of containers in ",
                    "the values of com.example.one at the provider",
                    "the container's record of com.example.stray at the provider",
                ] {
                    #expect(found.output.contains(sentence), "\(found.output)")
                }
                try await domain.shell(
                    name
                        + """
                        "$P" verify --provider --repair "$M"
                        within 10 '[ -e "$C/.promisefs/values/com.example.two.json" ]'\n
                        """ + Self.isThere
                        + """
                        [ ! -e "$C/.promisefs/containers/com.example.stray.json" ]
                        grep -q rot "$S/kept/provider-containers-com.example.stray.json" "$S/kept/containers.json"
                        """)
            }
        }

        /// They were refused until somebody removed the file, though the provider had them.
        @Test(.timeLimit(.minutes(2))) func valuesThatAreDamagedOnOneSideAreThoseOfTheOther() async throws {
            try await MountedDomain.with { domain in
                let name = "D=\(domain.domainName); get() { \"$P\" kv get --app com.example.$1 --domain $D theme; }\n"
                try await domain.shell(
                    name + Self.keep
                        + """
                        "$P" unmount --wait "$M"; echo rot > "$S/values/com.example.two.json"
                        """)
                try await domain.remount()
                try await domain.shell(
                    name
                        + """
                        [ "$(get two)" = light ]; grep -q rot "$S/kept/values-com.example.two.json"
                        "$P" status "$M" | grep -q 'com.example.two were damaged'
                        echo rot > "$C/.promisefs/values/com.example.one.json"; "$P" sync "$M"; [ "$(get one)" = dark ]
                        within 10 '"$P" status "$M" | grep -q "verify --provider --repair"'
                        "$P" unmount "$M"; echo rot > "$S/values/com.example.one.json"
                        """)
                try await domain.remount()
                try await domain.shell(
                    name
                        + """
                        s=0; get one 2> "$T/said" || s=$?; [ $s = 1 ]; grep -q 'are damaged' "$T/said"; [ "$(get two)" = light ]
                        # Whole nowhere: nothing here is used, and when both went nothing is said any more.
                        within 60 '"$P" status "$M" | grep -q "one are damaged at the provider and here"'
                        "$P" verify --provider --repair "$M"; not grep -q 'example.one are' <<< "$("$P" status "$M")"
                        "$P" kv set --app com.example.one --domain $D theme new; [ "$(get one)" = new ]
                        """)
            }
        }

        /// Of these, nothing was looked at.
        @Test(.timeLimit(.minutes(2)))
        func whatItemsHaveAndTheStorageSaysOfItselfAreCheckedAsWell() async throws {
            try await MountedDomain.with { domain in
                let name = "D=\(domain.domainName)\n"
                try await domain.shell(
                    """
                    echo x > "$M/x"; "$P" sync --wait "$M"; setfattr -n user.colour -v red "$M/x"
                    within 10 'grep -q colour "$C/.promisefs/attributes/items.json"'; sleep 1
                    mkdir -p "$C/.promisefs/storage"
                    echo '{"identifier":"abc","schema":1}' > "$C/.promisefs/storage/identity.json"
                    "$P" verify --provider "$M"; cp -r "$C/.promisefs" "$T/good"; cd "$C/.promisefs"
                    echo rot > "$S/attributes/items.json"; echo rot > attributes/items.json; echo rot > storage/identity.json
                    echo rot > storage/former-0.json; echo later > storage/others.json
                    """)
                let found = try await domain.shell("\"$P\" verify --provider \"$M\"", status: 1)
                for sentence in [
                    "the attributes of items in ", "the attributes of items at the provider, '.promisefs/attributes/items.json'",
                    "the storage's name at the provider, '.promisefs/storage/identity.json', cannot be used: add",
                    "'.promisefs/storage/former-0.json' at the provider cannot be used",
                ] {
                    #expect(found.output.contains(sentence), "\(found.output)")
                }
                #expect(!found.output.contains("others.json"), "\(found.output)")
                try await domain.shell(
                    """
                    "$P" verify --provider --repair "$M"; "$P" verify --provider "$M"; cd "$C/.promisefs"
                    grep -q colour attributes/items.json "$S/attributes/items.json"; [ -e storage/others.json ]
                    [ ! -e storage/identity.json ]; [ ! -e storage/former-0.json ]
                    [ "$(cat "$S/kept/attributes-items.json")" = rot ]
                    [ "$(cat "$S/kept/provider-storage-identity.json")" = rot ]
                    grep -q rot "$S/kept/provider-storage-former-0.json"
                    [ "$(getfattr --only-values -n user.colour "$M/x")" = red ]
                    """)
                // The name that references elsewhere know, and attributes that are gone there, come from here.
                try await domain.shell(
                    name
                        + """
                        # What was repaired a moment ago may be on its way there still, and then it is not missing.
                        cat > "$T/look" << 'END'
                        rm -f "$C/.promisefs/attributes/items.json"
                        "$P" verify --provider "$M" > "$T/found" && exit 1
                        grep -q 'attributes of items are missing at the provider' "$T/found"
                        END
                        export P M C T; within 10 'sh "$T/look"'
                        "$P" verify --provider --repair "$M"; within 10 'grep -q colour "$C/.promisefs/attributes/items.json"'
                        "$P" unmount --wait "$M"; python3 - <<'END'
                        import os, sqlite3
                        index = sqlite3.connect(os.environ["S"] + "/index.sqlite")
                        index.execute("insert or replace into setting values ('storage.identifier', 'abc')")
                        index.commit()
                        END
                        ! "$P" verify --provider --state-dir "$S" > "$T/found"; grep -q "storage's name.*is missing" "$T/found"
                        "$P" verify --provider --repair --state-dir "$S"; "$P" verify --provider --state-dir "$S"
                        grep -q '"identifier":"abc"' "$C/.promisefs/storage/identity.json"; echo rot > "$S/attributes/items.json"
                        ! "$P" verify --state-dir "$S" > "$T/found"; grep -q 'attributes of items in' "$T/found"
                        "$P" verify --repair --state-dir "$S"; "$P" verify --state-dir "$S"
                        """)
            }
        }

        /// Nobody looked at notes of moves and at pictures; and one object that was too large ended all checks.
        @Test(
            .timeLimit(.minutes(2)),
            .enabled(if: WebDAVServer.canRun, "there is no apache2, so there is no server to ask"))
        func notesOfMovesAndPicturesAreCheckedAsWell() async throws {
            try await WebDAVServer.with { server in
                try await MountedDomain.with(server.options()) { domain in
                    try await domain.shell(
                        """
                        mkdir "$T/p"; python3 "$R/clients/python/tests/pictures.py" make "$T/p" 1
                        echo 1 > "$M/a"; echo 2 > "$M/b"
                        "$P" thumbnail "$M/a" --save "$T/p/0.png"; mv "$M/b" "$M/c"; "$P" sync --wait "$M"; mv "$M/c" "$M/d"
                        "$P" sync --wait "$M"; within 20 '[ -e "$C/.promisefs/moves/items.json" ]'
                        within 20 '[ "$(ls "$C/.promisefs/pictures" | wc -l)" = 1 ]'; "$P" verify --provider "$M"
                        cd "$C/.promisefs"; echo rot > moves/items.json; echo rot > "$S/moves/items.json"
                        cp pictures/*.picture pictures/0.picture; truncate -s 17M values.large; mkdir -p values
                        mv values.large values/com.example.large.json
                        python3 - "$T/p/0.png" <<'END'
                        import hashlib, sys
                        item = b"place /gone"
                        name = hashlib.sha256(item).digest()[:20].hex()
                        with open(f"pictures/{name}.picture", "wb") as file:
                            file.write(b"promisefs-picture-at-a-provider-1 00 " + item + b"\\n" + open(sys.argv[1], "rb").read())
                        END
                        """)
                    let found = try await domain.shell("\"$P\" verify --provider \"$M\"", status: 1)
                    for sentence in [
                        "the notes of what was moved in ",
                        "the notes of what was moved at the provider, '.promisefs/moves/items.json'",
                        "'.promisefs/pictures/0.picture' at the provider is no picture of a document",
                        "at the provider is the picture of a document that has gone",
                        "'.promisefs/values/com.example.large.json' is larger than 16777216 bytes",
                    ] {
                        #expect(found.output.contains(sentence), "\(found.output)")
                    }
                    // One that is damaged comes from here again.
                    try await domain.shell(
                        """
                        cd "$C/.promisefs"; mv pictures/0.picture "$T/picture"
                        for file in pictures/*; do cmp -s "$file" "$T/picture" && picture=$file; done; echo rot > "$picture"
                        "$P" verify --provider --repair "$M"; "$P" verify --provider "$M"
                        within 20 'cmp -s "$C/.promisefs/$picture" "$T/picture"'; [ "$(ls pictures | wc -l)" = 1 ]
                        # What is no record may be all that there is of it: nothing removed it.
                        [ ! -e values/com.example.large.json ]
                        [ "$(stat -c %s "$S/kept/provider-values-com.example.large.json")" = $((17 << 20)) ]
                        grep -q '/c' moves/items.json; [ "$(cat "$S/kept/provider-moves-items.json")" = rot ]
                        """)
                }
            }
        }

        /// The file here was removed, and the answer to the deletion had only got lost.
        @Test(.timeLimit(.minutes(2))) func whatIsTooLargeIsKeptWhereItsRemovalFails() async throws {
            let faults = NSTemporaryDirectory() + "/large-\(UInt64.random(in: 0 ... .max))"
            var options = MountedDomain.Options()
            options.environment["PROMISEFS_FAULT_FILE"] = faults
            defer { for end in ["", ".log"] { try? FileManager.default.removeItem(atPath: faults + end) } }
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    echo x > "$M/x"; "$P" sync --wait "$M"; N=com.example.large; V="$C/.promisefs/values"
                    mkdir -p "$V"; truncate -s 17M "$V/$N.json"; echo 'folder.object.remove 1 EIO' > "$PROMISEFS_FAULT_FILE"
                    s=0; "$P" verify --provider --repair "$M" > "$T/said" 2>&1 || s=$?; [ $s = 1 ]
                    grep -q 'is kept as .*, and was not removed there' "$T/said"; [ -e "$V/$N.json" ]
                    [ "$(stat -c %s "$S/kept/provider-values-$N.json")" = $((17 << 20)) ]
                    "$P" verify --provider --repair "$M"; [ ! -e "$V/$N.json" ]
                    [ -e "$S/kept/provider-values-$N.json" ]; "$P" verify --provider "$M"
                    """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func statusAndUnmountCountRecordsThatWereNotSent() async throws {
            try await MountedDomain.with(MountedDomain.Options(arguments: ["--poll-interval", "1s"])) { domain in
                let name = "D=\(domain.domainName)\n"
                // A container's folder is sent first, and its record with what the provider calls that.
                try await domain.shell(
                    name + "\"$P\" container add --app com.example.zero --name Zero $D; \"$P\" unmount --wait \"$M\"")
                try await domain.remount()
                try await domain.shell(
                    name + "\"$P\" container add --app com.example.one --name One $D; \"$P\" sync --wait \"$M\"")
                try await domain.shell("within 10 '\"$P\" status --json \"$M\" | grep -q \"\\\"unsentRecords\\\":0\"'")
                try domain.setFaults(["offline=true"])
                try await domain.shell(
                    name
                        + """
                        "$P" kv set --app com.example.one --domain $D theme dark
                        "$P" container add --app com.example.one --public $D
                        "$P" status "$M" | grep 'not sent yet.*2 records'
                        [ "$("$P" unmount --json "$M" | grep -c '"pending":2')" = 1 ]
                        """)
                try await domain.remount()
                try await domain.shell("within 10 '\"$P\" status \"$M\" | grep -q \"not sent yet.*2 records\"'")
                try domain.setFaults([])
                try await domain.shell("within 20 '\"$P\" status --json \"$M\" | grep -q \"\\\"unsentRecords\\\":0\"'")
            }
        }

        /// What was answered is so after a power cut, a kill and on a full disk; of the rest there is all or nothing.
        @Test(
            .timeLimit(.minutes(5)), .enabled(if: getuid() == 0, "a file system is made for it"),
            arguments: ["--cuts 2", "--full"])
        func recordsAreWrittenWholeOrNotWhenThePowerFailsOrTheDiskIsFull(way: String) async throws {
            let result = try await runShell(
                "\"$R/scripts/workloads/records-in-trouble.py\" --executable \"$P\" \(way)",
                environment: ["R": Machine.repository, "P": Machine.executable, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"],
                seconds: 280, scratch: Machine.folder)
            #expect(result.status == 0, "\(result.output)\(result.error)")
        }
    }
}
