import Foundation
import Testing

extension MountSuites {
    /// The values of applications, between two daemons on one folder.
    @Suite struct KeyValueTests {
        private func twoMachines(_ body: (MountedDomain, MountedDomain) async throws -> Void) async throws {
            var options = MountedDomain.Options(arguments: ["--poll-interval", "1s"])
            try await MountedDomain.with(options) { first in
                options.cloud = first.cloud
                try await MountedDomain.with(options) { second in try await body(first, second) }
            }
        }

        /// `kv WORD …`: of one application in this domain.
        private func shorthand(_ domain: MountedDomain) -> String {
            "kv() { local w=$1; shift; \"$P\" kv \"$w\" --app com.example.editor --domain \(domain.domainName) \"$@\"; }\n"
        }

        @Test(.timeLimit(.minutes(2))) func aValueSetOnOneMachineIsSeenOnTheOtherAlsoAfterAKill() async throws {
            try await twoMachines { first, second in
                let (one, two) = (shorthand(first), shorthand(second))
                try await second.shell(
                    two
                        + """
                        kv watch --json > "$T/told" 2>&1 & echo $! > "$T/watch"
                        within 10 'grep -q initial-sync "$T/told"'; [ -z "$(kv list)" ]
                        """)
                try await first.shell(
                    one
                        + """
                        kv set place 'line 7'; kv set zoom 1.5 --type number; [ "$(kv get place)" = 'line 7' ]
                        # What is printed can be set again.
                        red=$(printf 'a\\033[31mb'); kv set red "$red"; [ "$(kv get red)" = "$red" ]
                        kv set when 2024-02-29T12:00:00Z --type date; t=$(kv get when); kv set xagain "$t" --type date
                        [ "$(kv get xagain)" = 2024-02-29T12:00:00.000000000Z ]
                        for bad in 'nan --type number' '[1] --type json' '2024-02-30 --type date'; do
                          s=0; kv set bad $bad 2> "$T/said" || s=$?; [ "$s" = 2 ]; [ "$(wc -l < "$T/said")" = 1 ]
                        done
                        """)
                try await second.shell(two + "within 5 '[ \"$(kv get place)\" = \"line 7\" ]'; kv set place 'line 9'")
                try await first.shell(one + "within 5 '[ \"$(kv get place)\" = \"line 9\" ]'")
                try await second.shell(
                    """
                    within 5 'grep -q "server-change" "$T/told"'; grep -q '"keys":\\["place"' "$T/told"
                    [ "$(grep -c initial-sync "$T/told")" = 1 ]; kill "$(cat "$T/watch")"
                    [ ! -e "$M/.promisefs" ]; [ -z "$(ls -A "$M")" ]
                    """)
                // What the command has said is kept, whenever the daemon dies.
                // Both daemons name the folder of the first, so both are killed.
                try await first.shell(one + "kv set last words")
                try await first.kill9()
                try await first.remount()
                try await second.remount()
                try await first.shell(
                    one + "[ \"$(kv get last)\" = words ]; [ \"$(kv get place)\" = 'line 9' ]; kv remove zoom")
                try await second.shell(
                    two + "within 5 '[ \"$(kv get last)\" = words ]'; within 5 'not kv get zoom 2> /dev/null'")
                try await first.shell("[ -e \"$C/.promisefs/values/com.example.editor.json\" ]; [ -z \"$(ls -A \"$M\")\" ]")
            }
        }

        @Test(.timeLimit(.minutes(2))) func whatIsOverALimitIsRefusedInOneSentenceAndTheOldValueStays() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    shorthand(domain)
                        + """
                        kv watch > "$T/told" 2>&1 & w=$!; within 10 'grep -q initial-sync "$T/told"'
                        kv set key old
                        refused() { local s=0; "$@" 2> "$T/err" || s=$?; [ "$s" = 1 ]; [ "$(wc -l < "$T/err")" = 1 ]; }
                        head -c 65537 /dev/zero > "$T/more"; head -c 65532 /dev/zero > "$T/most"
                        refused kv set key --file "$T/more"; grep -q 'at most 65536' "$T/err"
                        refused kv set "$(printf 'k%.0s' $(seq 65))" value; grep -q 'at most 64' "$T/err"
                        [ "$(kv get key)" = old ]
                        kv set most --file "$T/most" ; refused kv set key older; [ "$(kv get key)" = old ]
                        within 5 'grep -qx "quota-violation key" "$T/told"'
                        [ "$(grep -c initial-sync "$T/told")" = 1 ]; kill "$w"
                        kv set "$(printf 'k%.0s' $(seq 64))" ''
                        refused kv get nothing; refused kv remove nothing
                        s=0; "$P" kv get --app ../up --domain \(domain.domainName) key 2> "$T/err" || s=$?; [ "$s" = 1 ]
                        s=0; kv set key 2> /dev/null || s=$?; [ "$s" = 2 ]
                        s=0; kv set key x --type integer 2> /dev/null || s=$?; [ "$s" = 2 ]
                        s=0; "$P" kv get --app com.example.editor --domain nothing key 2> /dev/null || s=$?; [ "$s" = 3 ]
                        """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func theLimitsAreWhatTheMountWasToldToTheByte() async throws {
            let options = MountedDomain.Options(arguments: ["--values-limit", "100K", "--values-keys", "3"])
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    shorthand(domain)
                        + """
                        refused() { local s=0; "$@" 2> "$T/err" || s=$?; [ "$s" = 1 ]; [ "$(wc -l < "$T/err")" = 1 ]; }
                        head -c 102401 /dev/zero > "$T/more"; head -c 102400 /dev/zero > "$T/most"
                        refused kv set key --file "$T/more"; grep -q 'at most 102400' "$T/err"; kv set key --file "$T/most"
                        refused kv set two x; kv set key x; kv set two x; kv set three x
                        refused kv set four x; grep -q '3 keys' "$T/err"
                        s=0; "$P" mount --values-limit 5M "$T/nowhere" 2> /dev/null || s=$?; [ "$s" = 2 ]
                        """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func anExtensionKeepsValuesAndContainersForOtherMachines() async throws {
            let folder = Machine.folder + "/pfs-shelf-\(UInt64.random(in: 0 ... .max))"
            defer { try? FileManager.default.removeItem(atPath: folder) }
            let program = Machine.repository + "/Examples/PythonExtension/extension.py"
            var options = MountedDomain.Options(arguments: ["--poll-interval", "1s"])
            options.provider = "extension+exec:\(program)?--store=\(folder)"
            try await MountedDomain.with(options) { domain in
                let name = domain.domainName
                try await domain.shell(
                    shorthand(domain)
                        + """
                        kv set place 'line 7'; "$P" container add --app com.example.editor --name Editor \(name)
                        within 10 '"$P" status --json "$M" | grep -q "\\"unsentRecords\\":0"'; [ "$(ls -A "$M")" = Editor ]
                        "$P" unmount --wait "$M"; rm -r "$S"
                        """)
                try await domain.remount()
                try await domain.shell(
                    shorthand(domain)
                        + """
                        [ "$(kv get place)" = 'line 7' ]
                        [ "$("$P" container add --app com.example.editor \(name))" = "$M/Editor" ]
                        """)
            }
        }

        /// The daemon went on with the values of the user of before.
        @Test(.timeLimit(.minutes(2))) func anotherUserAtTheProviderIsToldAsAChangeOfTheAccount() async throws {
            let folder = Machine.folder + "/pfs-shelf-\(UInt64.random(in: 0 ... .max))"
            defer { try? FileManager.default.removeItem(atPath: folder) }
            let program = Machine.repository + "/Examples/PythonExtension/extension.py"
            var options = MountedDomain.Options(arguments: ["--poll-interval", "1s"])
            options.provider = "extension+exec:\(program)?--store=\(folder)"
            try await MountedDomain.with(options, mounts: false) { domain in
                let name = domain.domainName
                let login = """
                    login() { printf '[%s]\nuser = %s\npassword = x\n' \(name) "$1" > "$T/new"; chmod 600 "$T/new"
                        mkdir -p "$XDG_CONFIG_HOME/promisefs"; mv "$T/new" "$XDG_CONFIG_HOME/promisefs/credentials"; }\n
                    """
                try await domain.shell(login + "login alice")
                try await domain.remount()
                try await domain.shell(
                    shorthand(domain) + login
                        + """
                        kv set key alices; kv watch > "$T/told" 2>&1 & w=$!
                        "$P" container list --watch --json \(name) > "$T/accounts" & v=$!
                        within 10 'grep -q initial-sync "$T/told"'; within 5 'grep -q alice@ "$T/accounts"'
                        within 10 'grep -q "\\"unsentRecords\\":0" <("$P" status --json "$M")'; ! grep account-change "$T/told"
                        login bob; within 10 'grep -q account-change "$T/told"'; within 5 'grep -q bob@ "$T/accounts"'
                        kill $w $v; wait
                        """)
            }
        }

        /// Keys of a bucket have the same values: another one is told, and what was not sent stays.
        @Test(.timeLimit(.minutes(2))) func anotherAccessKeyOfABucketIsToldAndTakesNothing() async throws {
            try await S3Server.with(.moto) { s3 in
                // Ceph lets nobody in whom it does not know.
                guard s3.kind == .moto else { return }
                var options = s3.options()
                for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] { options.environment[name] = nil }
                try await MountedDomain.with(options, mounts: false) { domain in
                    let name = domain.domainName
                    let login = """
                        file="$XDG_CONFIG_HOME/promisefs/credentials"; mkdir -p "$XDG_CONFIG_HOME/promisefs"
                        login() { printf '[%s]\nuser = %s\npassword = x\n' \(name) "$1" > "$T/new"; chmod 600 "$T/new"
                            mv "$T/new" "$file"; }\n
                        """
                    try await domain.shell(login + "login alice")
                    try await domain.remount()
                    try await domain.shell(
                        shorthand(domain) + login
                            + """
                            kv set key alices; kv watch > "$T/told" 2>&1 & w=$!
                            "$P" container list --watch --json \(name) > "$T/accounts" & v=$!
                            within 10 'grep -q initial-sync "$T/told"'; within 5 'grep -q alice@ "$T/accounts"'
                            # What cannot be read is nobody's.
                            printf '[%s]\nuser = ' \(name) > "$file"; sleep 2; ! grep account-change "$T/told"
                            login bob; within 15 'grep -q account-change "$T/told"'; within 5 'grep -q bob@ "$T/accounts"'
                            [ "$(kv get key)" = alices ]; kill $w $v; wait
                            """)
                }
            }
        }

        @Test(.timeLimit(.minutes(2))) func aDiskThatIsFullLeavesTheOldValuesAlsoAfterAKill() async throws {
            var options = MountedDomain.Options(arguments: ["--poll-interval", "1s"])
            let folder = Machine.folder + "/pfs-values-\(UInt64.random(in: 0 ... .max))"
            options.environment["PROMISEFS_FAULT_FILE"] = folder
            defer { for suffix in ["", ".new", ".log"] { unlink(folder + suffix) } }
            try await MountedDomain.with(options) { domain in
                let kv = shorthand(domain)
                try await domain.shell(kv + "kv set key old")
                for label in ["create", "write", "sync", "rename", "names", "syncNames"] {
                    try await domain.shell(
                        kv
                            + """
                            F=$PROMISEFS_FAULT_FILE; echo 'values.\(label) 1 ENOSPC' > "$F.new"; mv "$F.new" "$F"
                            not kv set key new 2> "$T/err"; [ "$(wc -l < "$T/err")" = 1 ]; grep -q 'values.\(label)' "$F.log"
                            : > "$F.new"; mv "$F.new" "$F"; [ "$(kv get key)" = old ]
                            """)
                    try await domain.kill9()
                    try await domain.remount()
                    try await domain.shell(kv + "[ \"$(kv get key)\" = old ]")
                }
                try await domain.shell(kv + "kv set key new; [ \"$(kv get key)\" = new ]")
            }
        }

        @Test(.timeLimit(.minutes(2))) func whatUnmountingHasNotSentIsSaidAndSentByTheNextMount() async throws {
            try await MountedDomain.with { domain in
                let object = "\"$C/.promisefs/values/com.example.editor.json\""
                try await domain.shell(
                    shorthand(domain) + "kv set key one; \"$P\" unmount --wait \"$M\"; grep -q one \(object)")
                try await domain.remount()
                try domain.setFaults(["offline=true"])
                try await domain.shell(
                    shorthand(domain)
                        + "kv set key two; s=0; \"$P\" unmount \"$M\" || s=$?; [ \"$s\" = 7 ]; not grep two \(object)")
                try domain.setFaults([])
                try await domain.remount()
                try await domain.shell("within 30 'grep -q two \(object)'")
            }
        }

        @Test(.timeLimit(.minutes(2))) func valuesGoByAWebDAVServer() async throws {
            try await WebDAVServer.with { server in
                try await MountedDomain.with(server.options()) { first in
                    try await MountedDomain.with(server.options()) { second in
                        try await first.shell(shorthand(first) + "kv set key one")
                        try await second.shell(
                            shorthand(second)
                                + "within 10 '[ \"$(kv get key)\" = one ]'; kv set key two; [ -z \"$(ls -A \"$M\")\" ]")
                        try await first.shell(shorthand(first) + "within 10 '[ \"$(kv get key)\" = two ]'; kv remove key")
                        try await second.shell(shorthand(second) + "within 10 'not kv get key 2> /dev/null'")
                    }
                }
            }
        }

        @Test(.timeLimit(.minutes(2))) func anObjectThatCannotBeReadIsLeftAloneAndToldOf() async throws {
            try await MountedDomain.with(MountedDomain.Options(arguments: ["--poll-interval", "1s"])) { domain in
                try await domain.shell(
                    shorthand(domain)
                        + """
                        kv set key mine; O="$C/.promisefs/values/com.example.editor.json"; within 5 '[ -s "$O" ]'
                        for text in '{"schema": 2}' '{"schema": 1, "appl'; do
                            printf '%s' "$text" > "$O"; kv set key "$text"
                            within 5 '"$P" status --json "$M" | grep -q "values of com.example.editor are not exchanged"'
                            sleep 1; [ "$(cat "$O")" = "$text" ]; [ "$(kv get key)" = "$text" ]
                        done
                        rm "$O"; within 5 'grep -q appl "$O"'
                        within 5 'not grep -q "not exchanged" <("$P" status --json "$M")'
                        """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func valuesThatAreSetOfflineMeetWhenTheProviderIsBack() async throws {
            try await twoMachines { first, second in
                let (one, two) = (shorthand(first), shorthand(second))
                try await first.shell(one + "kv set both first; kv list > /dev/null")
                try await second.shell(two + "within 5 '[ \"$(kv get both)\" = first ]'")
                try first.setFaults(["offline=true"])
                try await first.shell(one + "kv set mine 1 --type integer; kv set both earlier; [ \"$(kv get mine)\" = 1 ]")
                try await second.shell(two + "kv set theirs true --type bool; kv set both later")
                try first.setFaults([])
                for domain in [first, second] {
                    try await domain.shell(
                        shorthand(domain)
                            + """
                            within 40 '[ "$(kv list | paste -sd,)" = "both = later,mine = 1,theirs = true" ]'
                            PYTHONPATH="$R/clients/python" python3 - "$M" <<'END'
                            import promisefs, sys
                            domain = promisefs.locate(sys.argv[1])[0]
                            values = domain.kept_values("com.example.editor")
                            assert values["mine"] == {"integer": 1}, values
                            assert domain.synchronize_values("com.example.editor")
                            END
                            """)
                }
            }
        }
    }
}
