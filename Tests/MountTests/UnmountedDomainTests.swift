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
