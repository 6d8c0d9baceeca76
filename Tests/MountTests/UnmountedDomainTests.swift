import Testing

extension MountSuites {
    /// Domains that nobody has mounted are not invisible.
    @Suite struct UnmountedDomainTests {
        @Test(.timeLimit(.minutes(2))) func whatWaitsInADomainThatIsNotMountedIsTold() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    export PROMISEFS_STATE_DIR="$T/states"; mkdir "$T/states"
                    "$P" mount --domain forgotten --upload-delay 1h folder:$C "$M"
                    "$P" domain list --json | grep -q '"mountPoint"'
                    "$P" status forgotten | grep -q 'forgotten'
                    echo text > "$M/waits"
                    rc=0; "$P" domain forget forgotten 2> "$T/said" || rc=$?; [ $rc = 1 ]; grep -q 'unmount it first' "$T/said"
                    chmod 000 "$C"; rc=0; "$P" unmount forgotten || rc=$?; chmod 755 "$C"; [ $rc = 7 ] || [ $rc = 0 ]
                    "$P" domain list > "$T/list"; cat "$T/list"; grep -Eq '^forgotten +not mounted' "$T/list"
                    if grep -q '1 item waits' "$T/list"; then
                        "$P" status | grep -q 'forgotten is not mounted: 1 item waits'
                        "$P" pending | grep -q 'forgotten is not mounted: 1 item waits'
                        rc=0; "$P" status forgotten 2> "$T/said" || rc=$?; [ $rc = 3 ]
                        grep -q "'forgotten' is not mounted: 1 item waits" "$T/said"
                        rc=0; "$P" domain forget forgotten || rc=$?; [ $rc = 7 ]; [ -d "$T/states/forgotten" ]
                    fi
                    "$P" domain forget forgotten --force
                    [ -z "$(ls -A "$T/states")" ]; [ -d "$C" ]
                    rc=0; "$P" domain forget forgotten || rc=$?; [ $rc = 3 ]
                    # What was kept aside may be all that there is of it.
                    "$P" mount --domain aside folder:$C "$M" > /dev/null; "$P" unmount --wait aside
                    mkdir "$T/states/aside/kept"; echo edit > "$T/states/aside/kept/7.1"
                    rc=0; "$P" domain forget aside 2> "$T/said" || rc=$?; [ $rc = 7 ]; grep -q "aside/kept'; take it" "$T/said"
                    "$P" domain forget aside --force; [ -z "$(ls -A "$T/states")" ]
                    """, seconds: 60)
            }
        }

        /// They were in no list, and nobody could forget them.
        @Test(.timeLimit(.minutes(1))) func domainsWithAFolderOfTheirOwnForTheirStateAreListedAndForgotten() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    mkdir -p "$T/a" "$T/b"; export PROMISEFS_STATE_DIR="$T/states"
                    "$P" mount --domain apart --state-dir "$T/a/state" folder:$C "$M" > /dev/null; "$P" unmount --wait apart
                    "$P" domain list | grep -Eq '^apart +not mounted +folder:'
                    "$P" domain list --json | grep -q '"stateFolder":"[^"]*/a/state"'
                    s=0; "$P" status apart 2> "$T/said" || s=$?; [ $s = 3 ]; grep -q "'apart' is not mounted; nothing" "$T/said"
                    "$P" verify --domain apart > /dev/null
                    # One of the same name lies somewhere else.
                    cp -a "$T/a/state" "$T/b/state"; "$P" domain list | grep -c apart > "$T/count"; [ "$(cat "$T/count")" = 1 ]
                    ln -s "$T/b/state" "$T/states/.elsewhere/apart@b"
                    s=0; "$P" domain forget apart 2> "$T/said" || s=$?; [ $s = 2 ]
                    grep -q 'a/state.*b/state.*--state-dir' "$T/said"
                    # Also while that is mounted; the mounted one cannot be forgotten.
                    "$P" mount --domain apart --state-dir "$T/a/state" folder:$C "$M" > /dev/null
                    "$P" domain list | grep -c '^apart' | grep -qx 2; "$P" domain list | grep -q '^apart *not mounted'
                    s=0; "$P" domain forget apart 2> "$T/said" || s=$?; [ $s = 1 ]; grep -q 'unmount it first' "$T/said"
                    s=0; "$P" domain forget apart --state-dir "$T/a/state" 2> "$T/said" || s=$?; [ $s = 1 ]
                    grep -q 'unmount it first' "$T/said"
                    "$P" domain forget apart --state-dir "$T/b/state"; [ ! -e "$T/b/state" ]; [ -e "$T/a/state/index.sqlite" ]
                    "$P" unmount --wait apart
                    # What is none of the domain's is not taken along.
                    echo diary > "$T/a/state/mine"; s=0; "$P" domain forget apart 2> "$T/said" || s=$?; [ $s = 1 ]
                    grep -q "'mine', which is none" "$T/said"; rm "$T/a/state/mine"
                    # A disk that is away hides it for a while.
                    mv "$T/a" "$T/away"; [ -z "$("$P" domain list | grep apart)" ]; mv "$T/away" "$T/a"
                    "$P" domain forget apart; [ ! -e "$T/a/state" ]; [ -z "$(ls -A "$T/states")" ]
                    """, seconds: 30)
            }
        }

        /// What an interrupted one had left kept every later one from ending, with "Directory not empty".
        @Test(.timeLimit(.minutes(1))) func whatAnInterruptedForgetLeftIsInNobodysWay() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    export PROMISEFS_STATE_DIR="$T/states"; mkdir -p "$T/states/.left.forgotten/content"
                    "$P" mount --domain left.forgotten folder:$C "$M" > /dev/null; "$P" unmount --wait left.forgotten
                    "$P" domain list | grep -q '^left.forgotten '; "$P" domain forget left.forgotten
                    "$P" mount --domain left folder:$C "$M" > /dev/null; "$P" unmount --wait left
                    echo secret > "$T/states/.left.forgotten/content/1"; "$P" domain forget left
                    [ -z "$(ls -A "$T/states")" ]
                    long=$(printf 'n%.0s' $(seq 255))
                    "$P" mount --domain long --state-dir "$T/$long" folder:$C "$M" > /dev/null; "$P" unmount --wait long
                    "$P" domain forget long; [ ! -e "$T/$long" ]
                    # A folder that was made for it stays, and nothing in it.
                    mkdir "$T/given"
                    rc=0; "$P" mount --state-dir "$T/given" webdav+http://localhost:1/ "$M" 2> /dev/null || rc=$?; [ $rc = 4 ]
                    [ -d "$T/given" ]; [ -z "$(ls -A "$T/given")" ]
                    """, seconds: 40)
            }
        }

        @Test(.timeLimit(.minutes(2))) func mistakesHaveJSONAndANearWord() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    rc=0; "$P" stauts 2> "$T/said" || rc=$?; [ $rc = 2 ]; grep -q "did you mean 'status'" "$T/said"
                    rc=0; "$P" status /usr --json 2> "$T/said" || rc=$?; [ $rc = 3 ]
                    grep -q '"error":"' "$T/said"; grep -q '"exitStatus":3' "$T/said"
                    rc=0; "$P" unmount nosuchdomain 2> "$T/said" || rc=$?; [ $rc = 3 ]
                    """, seconds: 30)
            }
        }
    }
}
