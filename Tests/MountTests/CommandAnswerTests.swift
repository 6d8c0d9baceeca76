import Foundation
import Testing

extension MountSuites {
    /// What a command did not do it says, and its exit status says so, too.
    @Suite struct CommandAnswerTests {
        private let options = {
            var options = MountedDomain.Options()
            options.prepare = "mkdir \"$C/folder\"; for n in 1 2 3; do echo $n > \"$C/folder/$n\"; done; echo x > \"$C/hello\""
            return options
        }()

        /// It ended with 0.
        @Test(.timeLimit(.minutes(2))) func anItemThatStaysThoughItWasNamedIsAFailureWithItsReason() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    evict() { status=0; "$P" evict "$@" > "$T/out" 2> "$T/said" || status=$?; }
                    "$P" fetch "$M/folder" > /dev/null; "$P" pin "$M/folder/1" > /dev/null
                    evict "$M/folder/1"; [ "$status" = 1 ]; grep -qx "promisefs: kept $M/folder/1: it is pinned" "$T/said"
                    exec 3< "$M/folder/2"; evict "$M/folder/2"; [ "$status" = 1 ]; grep -q '/folder/2: it is open' "$T/said"
                    evict "$M/folder"; [ "$status" = 0 ]; [ ! -s "$T/said" ]; grep -q '^kept .*/folder/1: it is pinned' "$T/out"
                    evict --json "$M/folder/1"; [ "$status" = 1 ]; grep -q '"exitStatus":1' "$T/said"
                    grep '"code":"pinned"' "$T/out" | grep -q '"exitStatus":1'
                    evict --json "$M/folder"; grep '"code":"pinned"' "$T/out"; not grep -q exitStatus "$T/out"
                    exec 3<&-; within 10 '"$P" evict "$M/folder/2"'
                    # A path stands for the domain that it is in, where a domain is asked for.
                    [ "$("$P" container list "$M/folder" --json)" = "$("$P" container list \(domain.domainName) --json)" ]
                    """)
                try domain.setFaults(["offline=true", "only=modify"])
                try await domain.shell(
                    """
                    waits() { status=0; "$P" evict "$M/hello" 2> "$T/said" || status=$?; [ "$status" = 7 ]; }
                    echo more >> "$M/hello"; within 10 waits
                    grep -q 'the provider does not have it yet' "$T/said"
                    """)
                try domain.setFaults([])
            }
        }

        /// The link's own item was pinned and evicted, and "1 item set" was said of it.
        @Test(.timeLimit(.minutes(1)))
        func aLinkThatWasNamedItselfStandsForItsDocument() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    is() { [ "$(getfattr --only-values -n user.promisefs.$1 "$M/hello")" = "$2" ]; }
                    ln -s hello "$M/link"; ln -s none "$M/lost"; ln -s /usr "$M/out"
                    "$P" fetch "$M/link"; is state current; "$P" pin "$M/link"; is pin pinned
                    "$P" unpin "$M/link"; is pin automatic
                    "$P" evict "$M/link"; is state placeholder
                    for command in fetch evict; do
                        s=0; "$P" $command "$M/lost" 2> "$T/said" || s=$?; [ "$s" = 1 ]
                        grep -q "/lost' is a link that leads nowhere" "$T/said"
                        s=0; "$P" $command "$M/out" 2> "$T/said" || s=$?; [ "$s" = 3 ]
                        grep -q "/out' is a link that leads out of the mount, to /usr" "$T/said"
                    done
                    "$P" pin "$M/lost" "$M/out" | grep -qx '2 items set to pinned'
                    """)
            }
        }

        /// Each path was a document of its own, and the one that failed had no mount before it.
        @Test(.timeLimit(.minutes(1)))
        func promisedValuesAreOneDocument() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    values() { "$P" info --key kMDItemFSName "$@"; }
                    cat > "$T/kind.py" << 'END'
                    import json, sys
                    found = json.load(sys.stdin)
                    print(type(found).__name__, len(found) if isinstance(found, list) else "")
                    END
                    kind() { values --json "$@" 2> "$T/said" | python3 "$T/kind.py"; }
                    [ "$(kind "$M/hello")" = 'dict ' ]
                    [ "$(kind "$M/hello" "$M/folder/1")" = 'list 2' ]
                    [ "$(kind "$M/hello" "$M/none" || true)" = 'list 1' ]
                    grep -q '"exitStatus":1' "$T/said"
                    s=0; values "$M/none" 2> "$T/said" || s=$?; [ "$s" = 1 ]
                    grep -q "^promisefs: $M/none: " "$T/said"
                    """)
            }
        }

        /// A link was replaced by a file, and as root a device.
        @Test(.timeLimit(.minutes(2))) func whatIsWrittenForAPersonGoesWhereLinksLeadAndToStreams() async throws {
            var options = MountedDomain.Options(prepare: "echo theirs > \"$C/mine\"")
            options.uploadDelay = "1h"
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    echo mine > "$M/mine"; "$P" revert "$M/mine" > /dev/null
                    cat > "$T/earlier.py" << 'END'
                    import json, sys
                    print([v["identifier"] for v in json.load(sys.stdin)["versions"] if v["kind"] == "earlier"][0])
                    END
                    V=$("$P" versions "$M/mine" --json | python3 "$T/earlier.py")
                    echo old > "$T/file"; ln -s file "$T/link"; ln -s /proc/self/fd/1 "$T/out"
                    "$P" versions "$M/mine" --get "$V" -o "$T/link"; [ -L "$T/link" ]; [ "$(cat "$T/file")" = mine ]
                    [ "$("$P" versions "$M/mine" --get "$V" -o "$T/out" | cat)" = mine ]; [ -L "$T/out" ]
                    """)
            }
        }

        /// "0 items set" was said, as the first trouble hid what had been done.
        @Test(
            .timeLimit(.minutes(2)),
            .enabled(if: WebDAVServer.canRun, "there is no apache2, so there is no server to mount"))
        func aPinSaysHowManyItemsHaveItAndWhichFolderFailed() async throws {
            try await WebDAVServer.with { server in
                try await FaultProxy.with(server) { proxy in
                    var options = server.options([])
                    options.provider = "webdav+http://127.0.0.1:\(proxy.port)/"
                    options.environment["RULES"] = proxy.rules
                    options.prepare = """
                        mkdir "$C/open" "$C/locked"; echo x > "$C/open/in"; echo y > "$C/locked/in"; chown -R www-data: "$C"/*
                        """
                    try await MountedDomain.with(options) { domain in
                        try await domain.shell(
                            """
                            echo 'method=PROPFIND path=/locked/ status=403' > "$RULES"; status=0
                            "$P" pin "$M" > "$T/out" 2> "$T/said" || status=$?; cat "$T/out" "$T/said"; [ "$status" = 5 ]
                            grep -qx '4 items set to pinned' "$T/out"; [ "$(wc -l < "$T/said")" = 1 ]
                            grep -q "^promisefs: $M/locked: " "$T/said"
                            [ "$("$P" info --json "$M/open/in" | grep -c '"pin":"pinned"')" = 1 ]; : > "$RULES"
                            "$P" unpin "$M" | grep -q ' items set to automatic'
                            """)
                    }
                }
            }
        }

        /// They died of the signal, in the middle of a line where one was being written.
        @Test(.timeLimit(.minutes(2))) func whatGoesOnUntilInterruptedEndsWithWholeLinesAndTheStatusOfShells() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    echo new > "$M/new"
                    python3 - "$P" "$M" <<'PYTHON'
                    import signal, subprocess, sys, time
                    program, mount = sys.argv[1:]
                    signal.signal(signal.SIGINT, signal.default_int_handler)
                    for words in (["status", "--watch", "--json", mount], ["pending", "--watch", "--json", mount],
                                  ["find", mount, "--name", "*", "--live", "--json"], ["watch", "--json", mount],
                                  ["changes", mount, "--since", "0", "--follow", "--json"], ["web", "--no-browser", "--json"]):
                        child = subprocess.Popen([program] + words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                        first = child.stdout.readline()
                        # It says its address, and may show it to a browser before it goes on.
                        time.sleep(0.5 if words[0] == "web" else 0)
                        child.send_signal(signal.SIGINT)
                        rest, said = child.communicate(timeout=20)
                        assert first.startswith(b"{") and (first + rest).endswith(b"\\n"), (words, first + rest)
                        assert (child.returncode, said) == (130, b""), (words, child.returncode, said)
                    # As shells start what runs in the background.
                    ignoring = subprocess.Popen([program, "status", "--watch", "--json", mount], stdout=subprocess.PIPE,
                                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
                    ignoring.stdout.readline()
                    ignoring.send_signal(signal.SIGINT)
                    assert ignoring.stdout.readline() and ignoring.poll() is None
                    ignoring.terminate()
                    PYTHON
                    """)
            }
        }

        /// The daemon took its absence at the old place for an unmount; and of a bind mount the domain's own was unmounted.
        @Test(.timeLimit(.minutes(1))) func aMountBelowARenamedFolderAndABindMountAreUnmounted() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    mkdir -p "$T/old/m" "$T/bound" "$C/d"; echo one > "$C/file"; echo a > "$C/d/a"
                    "$P" mount --state-dir "$S" --domain moved "folder:$C" "$T/old/m" > /dev/null
                    trap 'umount -l "$T/bound" "$T/new/m" 2> /dev/null || true' EXIT
                    mv "$T/old" "$T/new"; [ "$(cat "$T/new/m/file")" = one ]
                    if [ "$(id -u)" = 0 ]; then
                      mount --bind "$T/new/m/d" "$T/bound"; ls "$T/bound"
                      s=0; timeout 20 "$P" unmount "$T/new/m" 2> "$T/said" || s=$?; [ "$s" = 1 ]; grep -q 'bound.*bind' "$T/said"
                      [ "$("$P" find "$T/bound" --name a)" = "$T/bound/a" ]
                      timeout 20 "$P" unmount "$T/bound"; [ ! -e "$T/bound/a" ]; [ "$(cat "$T/new/m/d/a")" = a ]
                      mount -t tmpfs none "$T/new/m/d"; s=0; timeout 20 "$P" unmount "$T/new/m" 2> "$T/said" || s=$?
                      [ "$s" = 1 ]; grep -q 'another mount in it, .*/m/d' "$T/said"; umount "$T/new/m/d"
                    fi
                    # A successor finds it, too.
                    mv "$T/new" "$T/newer"; kill -9 "$("$P" status moved --json | sed 's/.*"processID":\\([0-9]*\\).*/\\1/')"
                    within 10 '[ "$(cat "$T/newer/m/file")" = one ]'; mv "$T/newer" "$T/new"
                    timeout 20 "$P" unmount "$T/new/m"; ! mountpoint -q "$T/new/m"
                    """)
            }
        }

        /// Lists were cut off silently on a full disk.
        @Test(.timeLimit(.minutes(1))) func whatCannotBeWrittenIsNoSuccess() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    ls "$M" > /dev/null
                    for words in "find $M TRUEPREDICATE" "status $M" "bookmark create $M/hello" "--version" "help operations"; do
                      s=0; "$P" $words > /dev/full 2> "$T/said" || s=$?; [ "$s" = 1 ]
                      grep -q '^promisefs: the output cannot be written: No space left' "$T/said"; [ "$(wc -l < "$T/said")" = 1 ]
                    done
                    s=0; "$P" status "$M" | true || s=$?; [ "$s" = 0 ]
                    "$P" help operations --json | grep -q '^{"text":"# '; "$P" help topics --json | grep -q '"semantics"'
                    # The provider was asked without a pause.
                    s=0; "$P" mount --poll-interval 0s "folder:$C" "$T/other" 2> "$T/said" || s=$?; [ "$s" = 2 ]
                    grep -q 'poll-interval is 100ms or more' "$T/said"
                    """)
            }
        }

        /// They ended at their first line, with 0: what was behind it was not done.
        @Test(.timeLimit(.minutes(2))) func whatChangesSomethingIsDoneAllThoughNobodyReadsTheAnswer() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    mkdir "$T/c2" "$T/m2"; echo there > "$T/c2/other"
                    "$P" mount --state-dir "$T/s2" --domain \(domain.domainName)b "folder:$T/c2" "$T/m2" > /dev/null
                    trap '"$P" unmount --lazy "$T/m2" > /dev/null 2>&1 || true' EXIT
                    cat > "$T/unread.py" << 'END'
                    import os, subprocess, sys
                    reader, writer = os.pipe()
                    os.close(reader)
                    sys.exit(subprocess.run(sys.argv[1:], stdout=writer).returncode)
                    END
                    unread() { python3 "$T/unread.py" "$P" "$@"; }
                    both() { [ "$("$P" info --json "$M/hello" "$T/m2/other" | grep -o "$1" | wc -l)" = 2 ]; }
                    unread pin "$M/hello" "$T/m2/other"; both '"pin":"pinned"'
                    unread unpin "$M/hello" "$T/m2/other"; both '"pin":"automatic"'
                    "$P" fetch "$M/hello" "$T/m2/other" > /dev/null; not both '"state":"placeholder"'
                    unread evict "$M/hello" "$T/m2/other"; both '"state":"placeholder"'
                    unread pause "$M"; "$P" status "$M" --json | grep -q '"pausedSince":"'
                    unread resume "$M"; not grep -q '"pausedSince":"' <<< "$("$P" status "$M" --json)"
                    """)
            }
        }

        /// systemctl's own lines came first, in words of its own.
        @Test(.timeLimit(.minutes(1))) func whatSystemctlSaysIsAPartOfTheOneSentence() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    mkdir -p "$T/bin" "$XDG_CONFIG_HOME/promisefs"; export PATH="$T/bin:$PATH"
                    printf '[domains.work]\\nmountpoint = "/nowhere"\\n' > "$XDG_CONFIG_HOME/promisefs/config.toml"
                    cat > "$T/bin/systemctl" <<'END'
                    #!/bin/sh
                    echo 'System has not been booted with systemd as init system (PID 1). Can'"'"'t operate.'
                    echo 'Failed to connect to bus: Host is down' >&2; exit 1
                    END
                    chmod +x "$T/bin/systemctl"
                    for command in enable disable; do
                        status=0; "$P" $command work > "$T/out" 2> "$T/said" || status=$?; [ "$status" = 1 ]; [ ! -s "$T/out" ]
                        [ "$(wc -l < "$T/said")" = 1 ]
                        said="'systemctl .*work.service' ended with status 1: System has not been .*operate; "
                        grep -q "^promisefs: $said" "$T/said"
                    done
                    printf '#!/bin/sh\\necho "Warning: changed on disk." >&2\\n' > "$T/bin/systemctl"
                    [ "$("$P" disable work 2> "$T/said")" = 'work is mounted by itself no longer' ]
                    [ "$(cat "$T/said")" = 'promisefs: Warning: changed on disk.' ]
                    # Of a name that nobody knows nothing was done, and "mounted by itself no longer" was said.
                    printf '#!/bin/sh\ncase "$*" in *is-*left*) ;; *is-*) exit 4;; esac\n' > "$T/bin/systemctl"
                    status=0; "$P" disable wrok > "$T/out" 2> "$T/said" || status=$?; [ "$status" = 2 ]; [ ! -s "$T/out" ]
                    grep -q "^promisefs: .*config.toml has no domain 'wrok', and nothing mounts" "$T/said"
                    [ "$(wc -l < "$T/said")" = 1 ]
                    # A unit outlives the lines of its domain.
                    [ "$("$P" disable left)" = 'left is mounted by itself no longer' ]
                    # Without one, as in a container, it was the status of shells for what they do not find.
                    rm "$T/bin/systemctl"
                    if [ -z "$(ls /usr/bin/systemctl /bin/systemctl 2> /dev/null)" ]; then
                        status=0; "$P" enable work 2> "$T/said" || status=$?; [ "$status" = 1 ]; grep -q 'no systemctl' "$T/said"
                    fi
                    """)
            }
        }

        /// They were taken without a word, and the provider suffered nothing.
        @Test(.timeLimit(.minutes(1))) func aFaultThatMeansNothingIsNamed() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    export TMPDIR="$T"; printf 'delay=2s\\nofline=true\\n' > "$T/faults"; status=0
                    "$P" try --fault "$T/faults" -- touch "$T/ran" 2> "$T/said" || status=$?; [ "$status" = 2 ]; [ ! -e "$T/ran" ]
                    grep -q "^promisefs: $T/faults: line 2 means nothing: 'ofline=true'; lines are as delay=2s, " "$T/said"
                    [ "$(wc -l < "$T/said")" = 1 ]; [ -z "$(ls -d "$T"/promisefs-try-* 2> /dev/null)" ]
                    calls=$(grep -ohE '^ +case .*' "$R/Sources/PromiseCore/ProviderCall.swift" | sed 's/^ *case //' | paste -sd,)
                    PYTHONPATH="$R/clients/python" python3 - "$calls" "$T" <<'PYTHON'
                    import sys
                    from promisefs.testing import _check
                    _check(["delay=2.5s", "delay=300ms", "offline=false", "fail=3", "only=" + sys.argv[1], "only=create"])
                    for line in ("ofline=true", "offline=yes", "delay=2", "fail=0", "only=fetchContent", "only=", "only=create,"):
                        try:
                            _check([line])
                        except ValueError as error:
                            assert f"'{line}' is no fault" in str(error)
                        else:
                            sys.exit(f"{line} was taken")
                    # It was written where it says, outside of the mount.
                    from promisefs.testing import TemporaryMount
                    for path in (sys.argv[2] + "/outside", "../outside", ""):
                        try:
                            TemporaryMount({path: "x"}).__enter__()
                        except ValueError as error:
                            assert "is no path below the mount" in str(error)
                        else:
                            sys.exit(f"{path} was taken")
                    PYTHON
                    [ -z "$(find "$T" -name outside -o -name 'promisefs-try-*')" ]
                    """)
            }
        }

        /// The second close looked for what the first had removed.
        @Test(.timeLimit(.minutes(1))) func aTemporaryMountThatIsClosedTwiceIsClosed() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    export TMPDIR="$T"
                    PYTHONPATH="$R/clients/python" PROMISEFS_EXECUTABLE="$P" python3 - <<'PYTHON'
                    from promisefs.testing import TemporaryMount
                    with TemporaryMount({"a": "x"}) as mount:
                        assert (mount.path / "a").read_text() == "x"
                        mount.close()
                    PYTHON
                    [ -z "$(ls -d "$T"/promisefs-try-* 2> /dev/null)" ]
                    """)
            }
        }

        @Test(.timeLimit(.minutes(1))) func pathsThatAreBytesArePickedInsideOfASandbox() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    export PROMISEFS_VIEW=/view PROMISEFS_SOCKET="$T/nowhere"
                    PYTHONPATH="$R/clients/python" python3 - <<'PYTHON'
                    import sys, promisefs
                    for source, words in ((b"/elsewhere", "is not in /view"), (b"/view/\\xff", "nowhere")):
                        try:
                            promisefs.pick("export", [source])
                        except promisefs.PromiseError as error:
                            assert words in str(error), error
                        else:
                            sys.exit(f"{source} was picked")
                    PYTHON
                    """)
            }
        }
    }
}
