import Testing

extension MountSuites {
    /// File systems inside the provider's folder: at two places, with one identity, and gone for a while.
    @Suite(.enabled(if: Machine.isRoot, "mounting is root's")) struct FolderMountTests {
        /// In a mount namespace of its own, so that nothing stays mounted.
        private func run(_ domain: MountedDomain, _ script: String, seconds: Int = 120) async throws {
            try await domain.shell(
                """
                cat > "$T/script" <<'END'
                set -eo pipefail
                within() {
                    for _ in $(seq $(($1 * 10))); do eval "$2" && return 0; sleep 0.1; done
                    echo "not: $2" >&2; return 1
                }
                # The daemon may be looking into it at that moment.
                let_go() { within 20 "umount '$1' 2> /dev/null"; }
                \(script)
                "$P" unmount "$M" || [ $? = 7 ]
                END
                unshare --mount --propagation private bash "$T/script"
                """, seconds: seconds)
        }

        @Test(.timeLimit(.minutes(3))) func aFolderThatIsMountedAtTwoPlacesIsShownAndEditedAtBoth() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await run(
                    domain,
                    """
                    mkdir -p "$C/one/sub" "$C/two"; echo first > "$C/one/file"; echo deep > "$C/one/sub/file"
                    mount --bind "$C/one" "$C/two"
                    \(domain.mountCommand)
                    for place in one two; do
                        [ "$(cat "$M/$place/file")" = first ]; [ "$(cat "$M/$place/sub/file")" = deep ]
                    done
                    echo second > "$M/two/file"; echo new > "$M/one/new"; "$P" sync --wait "$M"
                    [ "$(cat "$C/one/file")" = second ]; within 20 '[ "$(cat "$M/one/file")" = second ]'
                    within 20 '[ "$(cat "$M/two/new")" = new ]'; [ "$(cat "$M/two/sub/file")" = deep ]
                    echo third > "$C/one/file"
                    within 20 '[ "$(cat "$M/one/file")" = third ]'; within 20 '[ "$(cat "$M/two/file")" = third ]'
                    rm "$M/two/new"; "$P" sync --wait "$M"; within 20 '[ ! -e "$M/one/new" ]'
                    ls -R "$M" > "$T/shown"; ! grep -q conflict "$T/shown"; "$P" status "$M" | grep -q '0 failing'
                    """)
            }
        }

        @Test(.timeLimit(.minutes(3))) func twoDisksOfOneIdentityAreBothShownAndEdited() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await run(
                    domain,
                    """
                    mkdir -p "$C/a" "$C/b"; truncate -s 16M "$T/image"; mkfs.ext4 -q "$T/image"
                    mount -o loop "$T/image" "$C/a"; echo same > "$C/a/file"; mkdir "$C/a/sub"; umount "$C/a"
                    cp "$T/image" "$T/clone"; mount -o loop "$T/image" "$C/a"; mount -o loop "$T/clone" "$C/b"
                    \(domain.mountCommand)
                    [ "$(cat "$M/a/file")$(cat "$M/b/file")" = samesame ]
                    echo left > "$M/a/file"; echo right > "$M/b/file"; echo x > "$M/b/sub/x"; "$P" sync --wait "$M"
                    [ "$(cat "$C/a/file")$(cat "$C/b/file")" = leftright ]; [ "$(cat "$C/b/sub/x")" = x ]
                    [ ! -e "$C/a/sub/x" ]; [ "$(cat "$M/a/file")$(cat "$M/b/file")" = leftright ]
                    """)
            }
        }

        @Test(.timeLimit(.minutes(3))) func aDiskInsideThatGoesAwayIsOfflineAndNotRemoved() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await run(
                    domain,
                    """
                    mkdir "$C/disk"; truncate -s 16M "$T/image"; mkfs.ext4 -q "$T/image"; mount -o loop "$T/image" "$C/disk"
                    mkdir "$C/disk/sub"; echo here > "$C/disk/sub/here"; echo not > "$C/disk/sub/not"
                    echo other > "$C/other"
                    \(domain.mountCommand)
                    [ "$(cat "$M/disk/sub/here")" = here ]; stat "$M/disk/sub/not" > "$T/stat"
                    ino=$(stat -c %i "$M/disk/sub/here")
                    let_go "$C/disk"; [ -z "$(ls -A "$C/disk")" ]
                    "$P" sync "$M" || true; "$P" sync "$M" || true
                    [ "$(cat "$M/disk/sub/here")" = here ]; [ "$(stat -c %i "$M/disk/sub/here")" = "$ino" ]
                    [ -e "$M/disk/sub/not" ]
                    ! cat "$M/disk/sub/not" 2> "$T/said"; grep -q 'Network is down' "$T/said"
                    [ "$(cat "$M/other")" = other ]; "$P" status "$M" | grep -Eq 'connection +online'
                    echo edit >> "$M/disk/sub/here"; echo new > "$M/disk/new"; "$P" sync --wait --timeout 8s "$M" || true
                    [ -z "$(ls -A "$C/disk")" ]; "$P" pending "$M" > "$T/pending"; cat "$T/pending"
                    "$P" unmount "$M" || [ $? = 7 ]
                    \(domain.mountCommand)
                    ls "$M" > "$T/names"; "$P" sync "$M" || true
                    [ "$(head -n 1 "$M/disk/sub/here")" = here ]; [ "$(cat "$M/disk/new")" = new ]
                    mount -o loop "$T/image" "$C/disk"
                    within 60 '"$P" sync --wait --timeout 5s "$M" && [ "$(tail -n 1 "$C/disk/sub/here")" = edit ]'
                    [ "$(cat "$C/disk/new")" = new ]; [ "$(cat "$M/disk/sub/not")" = not ]
                    # Whoever removes the place says that it does not come back.
                    let_go "$C/disk"; rmdir "$C/disk"; within 60 '"$P" sync "$M" > "$T/said" 2>&1; [ ! -e "$M/disk" ]'
                    """, seconds: 170)
            }
        }

        /// Nothing in the folder around it was listed, and the whole mount went offline.
        @Test(.timeLimit(.minutes(3)))
        func aMountWhoseProgramHasDiedHidesNothingBesideIt() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await run(
                    domain,
                    """
                    mkdir -p "$C/dead" "$C/below/dies"; echo one > "$C/one"; echo two > "$C/below/two"
                    # Whoever had the other end is gone.
                    dead() {
                        exec 3<>/dev/fuse
                        mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 dead "$1"
                        exec 3>&-; ! stat "$1" 2> /dev/null
                    }
                    dead "$C/dead"
                    \(domain.mountCommand)
                    [ "$(cat "$M/one")" = one ]; [ -d "$M/below/dies" ]; [ "$(cat "$M/below/two")" = two ]
                    dead "$C/below/dies"; echo three > "$C/below/three"; echo four > "$C/four"
                    within 20 '[ "$(cat "$M/below/three" 2> /dev/null)" = three ]'
                    within 20 '[ "$(cat "$M/four" 2> /dev/null)" = four ]'
                    echo five > "$M/below/five"; within 20 '[ "$(cat "$C/below/five" 2> /dev/null)" = five ]'
                    # What is removed beside it goes, and it is not taken for removed.
                    rm "$C/below/two"; within 20 '[ ! -e "$M/below/two" ]'
                    sleep 6; [ -d "$M/below/dies" ]; "$P" status "$M" | grep -Eq 'connection +online'
                    let_go "$C/dead"; within 30 '[ -d "$M/dead" ]'
                    """)
            }
        }

        /// The one that was there alone had the names of the other's files, until both were there.
        @Test(.timeLimit(.minutes(3))) func aCloneThatIsSeenAloneAfterARestartStaysItself() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await run(
                    domain,
                    """
                    mkdir -p "$C/a" "$C/b"; truncate -s 16M "$T/image"; mkfs.ext4 -q "$T/image"
                    mount -o loop "$T/image" "$C/a"; echo same > "$C/a/file"; umount "$C/a"
                    cp "$T/image" "$T/clone"; mount -o loop "$T/image" "$C/a"; mount -o loop "$T/clone" "$C/b"
                    \(domain.mountCommand)
                    echo left > "$M/a/file"; echo right > "$M/b/file"; "$P" sync --wait "$M"
                    ino=$(stat -c %i "$M/b/file"); "$P" unmount "$M"; let_go "$C/a"
                    \(domain.mountCommand)
                    "$P" sync "$M" || true; [ "$(cat "$M/a/file")$(cat "$M/b/file")" = leftright ]
                    [ "$(stat -c %i "$M/b/file")" = $ino ]; echo right again > "$M/b/file"
                    within 20 '[ "$(cat "$C/b/file")" = "right again" ]'; mount -o loop "$T/image" "$C/a"
                    within 30 '"$P" sync "$M"'; echo left again > "$M/a/file"; "$P" sync --wait "$M"
                    [ "$(cat "$C/a/file")" = 'left again' ]; [ "$(cat "$C/b/file")" = 'right again' ]
                    [ "$(cat "$M/b/file")" = 'right again' ]; [ "$(ls -A "$M/a" "$M/b" | grep -c conflict)" = 0 ]
                    """)
            }
        }

        /// inotify says nothing of it: what had gone was shown until somebody listed the folder anew.
        @Test(.timeLimit(.minutes(3))) func whatIsMountedAndUnmountedInsideIsNoticedByItself() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await run(
                    domain,
                    """
                    mkdir -p "$C/one" "$C/two" "$C/three"; echo first > "$C/one/file"; echo below > "$C/two/below"
                    \(domain.mountCommand)
                    ls "$M" "$M/one" "$M/two" "$M/three" > "$T/names"; [ -e "$M/two/below" ]
                    mount --bind "$C/one" "$C/two"; within 10 '[ "$(cat "$M/two/file" 2> /dev/null)" = first ]'
                    [ ! -e "$M/two/below" ]; let_go "$C/two"
                    # What was seen there is away, and what is below is not shown for it.
                    within 10 '"$P" status "$M" > /dev/null; ! echo new > "$M/two/new" || [ ! -e "$C/two/new" ]'
                    sleep 2; [ ! -e "$C/two/new" ]; [ "$(cat "$C/one/file")" = first ]; ls "$M/two" > "$T/names"
                    mount --bind "$C/one" "$C/two"; [ "$(cat "$M/one/file")" = first ]
                    within 60 '"$P" sync --wait --timeout 5s "$M"; [ -e "$C/one/new" ]'
                    """)
            }
        }

        /// What waited for the one that had gone was to be lost, or to go to the other.
        @Test(.timeLimit(.minutes(3))) func anotherDiskAtThePlaceOfOneThatWentAwayIsShownAndLosesNothing() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await run(
                    domain,
                    """
                    mkdir "$C/disk"
                    for n in one two; do truncate -s 16M "$T/$n"; mkfs.ext4 -q "$T/$n"; mount -o loop "$T/$n" "$C/disk"
                        echo $n > "$C/disk/$n"; echo $n > "$C/disk/both"; umount "$C/disk"; done
                    mount -o loop "$T/one" "$C/disk"
                    \(domain.mountCommand)
                    cat "$M/disk/one" "$M/disk/both" > /dev/null; let_go "$C/disk"; "$P" sync "$M" || true
                    echo edited > "$M/disk/both"; echo new > "$M/disk/new"; sleep 1; mount -o loop "$T/two" "$C/disk"
                    within 30 '[ "$(cat "$M/disk/two" 2> /dev/null)" = two ]'; "$P" sync --wait --timeout 10s "$M" || true
                    [ "$(cat "$C/disk/both")" = two ]; [ "$(cat "$M/disk/both")" = two ]; [ ! -e "$M/disk/one" ]
                    grep -rlx edited "$M" > "$T/kept"; grep -rlx new "$M" > "$T/kept2"; ls -R "$M"
                    let_go "$C/disk"; mount -o loop "$T/one" "$C/disk"; within 30 '[ "$(cat "$M/disk/one" 2> /dev/null)" = one ]'
                    [ "$(cat "$M/disk/both")" = one ]; grep -rlx edited "$M" > "$T/kept"; grep -rlx new "$M" > "$T/kept2"
                    """)
            }
        }
    }
}
