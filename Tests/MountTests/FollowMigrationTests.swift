import Foundation
import Testing

extension MountSuites {
    /// Machines that have a storage mounted whose domain another machine moves away.
    @Suite struct FollowMigrationTests {
        /// Of the other machine: where it has the storage mounted, how it mounts, and what it is told to type.
        private static func shorthand(_ domain: MountedDomain, _ provider: String) -> String {
            """
            N=\(domain.domainName); OLD='\(provider)'; L="$T/second"; mkdir -p "$T/new" "$L"
            command() { "$P" status "$L" | grep -o 'promisefs unmount .*' | sed "s|promisefs|\\"$P\\"|g"; }
            mounted() { "$P" mount --state-dir "$T/state" --domain ${N}b --upload-delay 1h --poll-interval 1s "$1" "$L"; }

            """
        }

        /// They went on with the old place, and had to be forgotten and mounted anew by hand.
        @Test(.timeLimit(.minutes(3)), arguments: [false, true])
        func otherMachinesAreToldAndFollowWithAllThatWaitsThere(fromServer: Bool) async throws {
            guard fromServer else {
                return try await MountedDomain.with(MountedDomain.Options(arguments: ["--poll-interval", "1s"])) {
                    try await follow($0, "folder:" + $0.cloud)
                }
            }
            guard WebDAVServer.canRun else { return }
            try await WebDAVServer.with { server in
                var options = server.options()
                options.environment["PROMISEFS_OLD_USER"] = WebDAVServer.user
                options.environment["PROMISEFS_OLD_PASSWORD"] = WebDAVServer.password
                try await MountedDomain.with(options) { try await follow($0, server.provider) }
            }
        }

        private func follow(_ domain: MountedDomain, _ provider: String) async throws {
            // Of what is known by its place a move is not seen behind it.
            let isByPlace = !provider.hasPrefix("folder:")
            let shorthand = Self.shorthand(domain, provider)
            try await domain.shell(
                shorthand
                    + """
                    for i in 1 2 3 4 5 6 7 8 9; do echo $i > "$M/$i"; done; mkdir "$M/a" "$M/gone" "$M/away"; echo x > "$M/away/x"
                    echo deep > "$M/a/deep"; ln -s 1 "$M/l"
                    "$P" sync --wait "$M"; mounted "$OLD"; cat "$L"/[1-6] "$L/a/deep" "$L/away/x" > /dev/null
                    "$P" sync --wait "$L"
                    "$P" unmount --wait "$M"; "$P" migrate $N --state-dir "$S" "folder:$T/new"
                    "$P" mount --state-dir "$S" --domain $N --upload-delay 200ms --poll-interval 1s "folder:$T/new" "$M"
                    echo first > "$M/6"; echo first > "$M/9"; rm "$M/gone" -r; "$P" sync --wait "$M"
                    # What it tells the old place before it knows, also of what the first one has changed.
                    echo later > "$L/later"; mkdir "$L/empty"; echo second > "$L/6"; echo told > "$L/5"
                    # What it removes there, and what somebody else has removed there, as when the old place is tidied away.
                    rm -r "$L/7" "$L/9" "$L/away"; rm "$C/8"
                    [ \(isByPlace ? 1 : 0) = 1 ] || mv "$L/a/deep" "$L/a/moved"; "$P" sync --wait "$L"
                    echo edited >> "$L/1"; mv "$L/2" "$L/a/two"; rm "$L/3"; echo fresh > "$L/fresh"; chmod 600 "$L/4"
                    """, seconds: 90)
            try await domain.shell(
                shorthand
                    + """
                    within 20 '"$P" status "$L" | grep -q "another machine has moved it to"'
                    "$P" pending "$L" | grep -q "another machine has moved it to folder:$T/new"
                    "$P" pending "$L" --json | grep -q '"movedTo":"folder:'
                    ("$P" doctor --no-check || true) | grep -q 'another machine has moved its domain'
                    [ "$("$P" status "$M" | grep -c 'another machine')" = 0 ]
                    echo "$(command)" > "$T/command"; grep -q unmount "$T/command"; bash "$T/command" > "$T/out"
                    grep -q 'where another machine has brought it' "$T/out"; [ "$(grep -c 'only there' "$T/out")" = 0 ]
                    "$P" sync --wait "$L"; "$P" sync "$M"
                    for m in "$M" "$L" "$T/new"; do
                        for n in 7 away; do within 20 "[ ! -e '$m/$n' ]"; done
                        for n in 8 9; do within 20 "[ -e '$m/$n' ]"; done
                        [ "$(cat "$m/8")" = 8 ]; [ "$(cat "$m/9")" = first ]
                        within 20 "[ \\"\\$(cat '$m/1')\\" = \\"\\$(printf '1\\nedited')\\" ]"; within 20 "[ -e '$m/a/two' ]"
                        [ "$(cat "$m/a/two")" = 2 ]; [ ! -e "$m/2" ]; [ ! -e "$m/3" ]; [ ! -e "$m/gone" ]
                        within 20 "[ -e '$m/fresh' ]"; within 20 "[ -e '$m/later' ]"; within 20 "[ -d '$m/empty' ]"
                        [ "$(cat "$m/later")" = later ]; within 20 "[ \\"\\$(cat '$m/5')\\" = told ]"
                        [ \(isByPlace ? 1 : 0) = 1 ] || within 20 "[ -e '$m/a/moved' ]"; [ "$(cat "$m"/a/[dm]*)" = deep ]
                        [ "$(stat -c %a "$m/4")" = 600 ]; [ "$(readlink "$m/l")" = 1 ]
                        # Both changed it: both are there.
                        within 20 "[ \\"\\$(cat '$m'/6* | sort | tr '\\n' ' ')\\" = 'first second ' ]"
                    done
                    [ "$(ls "$M" | sort)" = "$(ls "$L" | sort)" ]; [ "$("$P" status "$L" | grep -c 'another machine')" = 0 ]
                    "$P" verify --provider "$L"; "$P" unmount --wait "$L"
                    """, seconds: 120)
        }

        /// It had found the new storage not empty, and from then on it never followed.
        @Test(.timeLimit(.minutes(2))) func aMachineThatTriedTooEarlyFollowsLater() async throws {
            try await MountedDomain.with(MountedDomain.Options(arguments: ["--poll-interval", "1s"])) { domain in
                try await domain.shell(
                    Self.shorthand(domain, "folder:" + domain.cloud)
                        + """
                        second() { "$P" migrate ${N}b --state-dir "$T/state" "folder:$T/new"; }
                        echo one > "$M/one"; "$P" sync --wait "$M"; mounted "$OLD"; cat "$L/one" > /dev/null
                        "$P" unmount --wait "$L"; "$P" unmount --wait "$M"; echo half > "$T/new/half"
                        s=0; second 2> "$T/err" || s=$?; [ $s = 6 ]; grep -q 'not empty' "$T/err"; rm "$T/new/half"
                        "$P" migrate $N --state-dir "$S" "folder:$T/new"
                        second | grep -q 'where another machine has brought it'; [ ! -e "$T/state/migration" ]
                        mounted "folder:$T/new"; [ "$(cat "$L/one")" = one ]; "$P" unmount --wait "$L"
                        """)
            }
        }

        /// What is printed is to be typed, and whoever may write to the storage may write the record.
        @Test(.timeLimit(.minutes(2))) func aRecordOfStrangersNamesNoProgramAndIsOneWordForTheShell() async throws {
            try await MountedDomain.with(MountedDomain.Options(arguments: ["--poll-interval", "1s"])) { domain in
                try await domain.shell(
                    """
                    mkdir -p "$C/.promisefs/storage"; echo x > "$M/x"; "$P" sync --wait "$M"
                    record() { python3 - "$1" > "$C/.promisefs/storage/moved.json" <<'END'
                    import json, sys
                    print(json.dumps({"schema": 1, "provider": sys.argv[1], "root": "a", "oldRoot": "b", "pieces": 0}))
                    END
                    }
                    record "extension+exec:/bin/sh"; "$P" sync "$M"; sleep 1; [ "$("$P" status "$M" | grep -c 'has moved')" = 0 ]
                    record 'folder:/a;touch "$T/stolen"`id`'; "$P" sync "$M"; within 10 '"$P" status "$M" | grep -q "has moved"'
                    "$P" status "$M" | grep -o 'promisefs unmount .*' | sed 's/promisefs/echo/g' > "$T/typed"
                    bash "$T/typed" > "$T/said"; [ ! -e "$T/stolen" ]; grep -qF 'folder:/a;touch "$T/stolen"`id`' "$T/said"
                    rm "$C/.promisefs/storage/moved.json"; "$P" sync "$M"
                    within 10 '[ "$("$P" status "$M" | grep -c "has moved")" = 0 ]'
                    """)
            }
        }
    }
}
