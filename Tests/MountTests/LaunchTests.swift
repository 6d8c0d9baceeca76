import Foundation
import Testing

extension MountSuites {
    /// `promisefs run --app` beyond one view of one domain.
    @Suite struct LaunchTests {
        @Test(.timeLimit(.minutes(2))) func aLaunchHasViewsOfSeveralDomains() async throws {
            try await MountedDomain.with(.init(prepare: "echo here > $C/doc")) { domain in
                try await domain.shell(
                    """
                    ID=com.example.editor; D=\(domain.domainName); E=${D}b
                    mkdir -p $T/c2 $T/m2; echo there > $T/c2/doc; echo secret > $T/c2/other
                    "$P" mount --state-dir $T/s2 --domain $E --upload-delay 200ms folder:$T/c2 $T/m2
                    trap '"$P" unmount --lazy $T/m2 > /dev/null 2>&1 || true' EXIT
                    "$P" grants add $M/doc --app $ID > /dev/null; "$P" grants add $T/m2/doc --app $ID > /dev/null
                    app() { "$P" run --app $ID --domain $D --domain $E -- "$@"; }
                    [ "$(app sh -c "cat granted/doc /domains/$E/granted/doc; ls /domains /domains/$E/granted" | tr '\\n' ' ')" \\
                        = "here there /domains: $E  /domains/$E/granted: doc " ]
                    app sh -c "echo new > /domains/$E/granted/doc; ls -l \\$PROMISEFS_SOCKET /run/promisefs-$E.sock > /dev/null"
                    [ "$(cat $T/m2/doc)" = new ]; [ "$(cat $M/doc)" = here ]
                    # Each domain is busy while it runs, and both are left when it has ended.
                    app sh -c "echo up > /domains/$E/granted/up; sleep 30" & p=$!
                    within 10 "ls $T/m2/.promisefs-views/*/scratch/up > /dev/null 2>&1"
                    ! "$P" unmount $T/m2 2> $T/said; grep -q 'runs with a view' $T/said
                    kill $p; wait $p || true; within 10 "[ ! -e $T/m2/.promisefs-views ] && [ ! -e $M/.promisefs-views ]"
                    s=0; app --domain $D true 2> /dev/null || s=$?; [ $s != 0 ]
                    "$P" unmount $T/m2
                    """)
            }
        }

        /// The application had the connection of `promisefs` to the owner's socket, and so was the owner; it had whatever its
        /// caller had open, and read the caller's environment in /proc/1/environ.
        @Test(.timeLimit(.minutes(2))) func nothingThatTheCallerHasComesAlong() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    echo secret > $T/secret; export PROMISEFS_PASSWORD=hunter2
                    app() { "$P" run --app com.example.editor --domain \(domain.domainName) -- "$@"; }
                    app sh -c 'cat /proc/[0-9]*/environ; cat <&7; ls -l /proc/self/fd /proc/[0-9]*/fd' \
                        7< $T/secret 8< $T 2> /dev/null | cat > $T/seen
                    grep -q PROMISEFS_APP $T/seen; ! grep -q -e hunter2 -e secret $T/seen
                    # Its standard streams, ls's own folder, and the filter of bubblewrap.
                    ! grep -e socket: -e eventpoll -e eventfd $T/seen; ! grep -q "> $T" $T/seen
                    """)
            }
        }

        /// bubblewrap's own processes outlived it, and so did the program, for good.
        @Test(.timeLimit(.minutes(2))) func aLaunchThatIsKilledWhileItsSandboxIsMadeLeavesNoProcess() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    cat > $T/race.py << 'END'
                    import os, subprocess, sys, time
                    executable, domain, mark = sys.argv[1:]
                    def children(process):
                        try:
                            return [int(word) for word in open(f"/proc/{process}/task/{process}/children").read().split()]
                        except OSError:
                            return []
                    def makes_its_sandbox(process):
                        try:
                            name = open(f"/proc/{process}/comm").read().strip()
                        except OSError:
                            return False
                        return name == "bwrap" and children(process) or any(map(makes_its_sandbox, children(process)))
                    for _ in range(20):
                        words = [executable, "run", "--app", "com.example.editor", "--domain", domain, "--", "sleep", mark]
                        launch = subprocess.Popen(words)
                        while launch.poll() is None and not makes_its_sandbox(launch.pid):
                            pass
                        launch.kill()
                        launch.wait()
                    END
                    mark=40.$$; python3 $T/race.py "$P" \(domain.domainName) $mark
                    within 10 '! pgrep -fx "sleep $mark" > /dev/null' || { pkill -fx "sleep $mark"; exit 1; }
                    within 10 '[ ! -e $M/.promisefs-views ]'
                    """)
            }
        }

        /// It was under way for ten seconds more, with its socket and its grants.
        @Test(.timeLimit(.minutes(2))) func aLaunchThatIsKilledBeforeItHasItsViewEndsAtOnce() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    cat > $T/open.py << 'END'
                    import os, promisefs, signal, sys
                    domain, _ = promisefs.locate(sys.argv[1])
                    view = domain._call("POST", "views", {"application": "com.example.editor", "isOfCaller": True})
                    print(view["socket"], flush=True)
                    signal.pause()
                    END
                    PYTHONPATH="$R/clients/python" python3 $T/open.py $M > $T/socket & p=$!
                    within 10 '[ -s $T/socket ]'; sleep 1; [ -S "$(cat $T/socket)" ]
                    kill -9 $p; within 2 '[ ! -e "$(cat $T/socket)" ]'; [ ! -e "$(sed s/app.sock/dev.sock/ $T/socket)" ]
                    "$P" run --app com.example.editor -- true
                    """)
            }
        }

        /// Nobody noticed, as its answer was never begun: its socket and its grants were there until the mount ended.
        @Test(.timeLimit(.minutes(2))) func aLaunchWhoseLauncherGoesBeforeTheAnswerBeginsEnds() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    cat > $T/leave.py << 'END'
                    import promisefs, socket, sys, time
                    domain, _ = promisefs.locate(sys.argv[1])
                    body = b'{"application":"com.example.editor"}'
                    head = b"POST /v1/launches HTTP/1.1\\r\\nHost: promisefs\\r\\nContent-Type: application/json\\r\\n"
                    for turn in range(100):
                        line = socket.socket(socket.AF_UNIX)
                        line.connect(domain.socket_path)
                        line.sendall(head + b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
                        # At once, and while it is made.
                        time.sleep(turn % 20 * 0.0005)
                        line.close()
                    END
                    PYTHONPATH="$R/clients/python" python3 $T/leave.py $M; sleep 1
                    count() { grep -c "$1" $S/audit.log || true; }
                    within 20 '[ $(count launches.begin) -gt 0 ] && [ $(count launches.begin) = $(count launches.end) ]'
                    within 20 '[ -z "$(find $XDG_RUNTIME_DIR -name "*.app.sock")" ]'
                    "$P" grants list --domain \(domain.domainName) --json > $T/list; not grep -q '"launch"' $T/list
                    """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func unmountSaysWhomItWaitsFor() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    unshare -m --propagation private sleep 50 & p=$!; within 10 '[ "$(cat /proc/$p/comm)" = sleep ]'
                    "$P" unmount $M 2> $T/said & u=$!
                    within 15 'grep -q ") has the mount in a mount namespace" $T/said'; not mountpoint -q $M
                    kill -0 $u; kill $p; wait $p || true; wait $u
                    """)
                try await domain.remount()
            }
        }

        /// What was answered is so after a power cut and on a full disk; of the rest there is all or nothing.
        @Test(
            .timeLimit(.minutes(5)), .enabled(if: getuid() == 0, "a file system is made for it"),
            arguments: ["--cuts 4", "--full"])
        func grantsAreWrittenWholeOrNotWhenThePowerFailsOrTheDiskIsFull(way: String) async throws {
            let result = try await runShell(
                "\"$R/scripts/workloads/grants-in-trouble.py\" --executable \"$P\" \(way)",
                environment: ["R": Machine.repository, "P": Machine.executable, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"],
                seconds: 280, scratch: Machine.folder)
            #expect(result.status == 0, "\(result.output)\(result.error)")
        }

        /// What an ordinary program can call, in the container and on the disk, both from within the sandbox.
        @Test(.timeLimit(.minutes(3))) func inAViewCallsAreAnsweredAsByTheDisk() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    ID=com.example.editor; D=\(domain.domainName); E=$M/Editor/Documents
                    "$P" container add --app $ID --name Editor $D > /dev/null
                    chmod 755 $T/.. $T; mkdir $T/beside; [ $(id -u) != 0 ] || chown nobody:nogroup $T/beside
                    printf '%s\\n' --ro-bind $W /w --bind $T/beside /beside > $T/profile
                    cat > $T/beside/check <<'END'
                    cd /beside; mkdir /documents/container/Documents/in in
                    for folder in /beside/in /documents/container/Documents/in; do
                        python3 /w/file-operations.py $folder
                        mkdir $folder/deep; python3 /w/posix-content.py $folder/deep every_way_to_allocate holes copies \\
                            mappings rename_flags writing_in_every_way
                    done > all
                    END
                    "$P" run --app $ID --domain $D --profile $T/profile -- bash -e /beside/check
                    n=$(($(wc -l < $T/beside/all) / 2)); [ $n -gt 200 ]
                    # A view keeps no set-user-ID bit.
                    diff -u <(head -n $n $T/beside/all | sed 's/^mode: 0o104711/mode: 0o100711/') <(tail -n $n $T/beside/all)
                    "$P" sync --wait $M
                    python3 $W/compare-trees.py $E/in $C/Editor/Documents/in --no-times --ignore fifo
                    """, seconds: 120)
            }
        }

        /// One document by three ways, at the same time.
        @Test(.timeLimit(.minutes(2))) func twoViewsAndTheMountAgreeOnOneDocument() async throws {
            try await MountedDomain.with(.init(prepare: "mkdir $C/Work; echo one > $C/Work/text")) { domain in
                try await domain.shell(
                    """
                    D=\(domain.domainName)
                    for n in 1 2; do "$P" grants add $M/Work/text --app com.example.a$n > /dev/null; done
                    cat > $T/each.py << 'EOF'
                    import os, sys, time
                    me, path, flags = sys.argv[1], sys.argv[2], sys.argv[3]
                    file = open(path, "r+b", buffering=0)
                    # Of a file that was made longer and not written yet the rest is zeros.
                    def told():
                        word = (os.pread(file.fileno(), 100, 0).split() + [b"", b""])[1]
                        return int(word) if word.isdigit() else 0
                    for turn in range(30):
                        whose = turn % 3 == int(me)
                        while told() < turn: time.sleep(0.002)
                        if whose:
                            # The turn is told last: the others go on by it.
                            os.ftruncate(file.fileno(), len(b"turn %d \\n" % (turn + 1)) + turn * 700 % 5000)
                            os.pwrite(file.fileno(), b"turn %d %s\\n" % (turn + 1, b"x" * (turn * 700 % 5000)), 0)
                    while not os.pread(file.fileno(), 100, 0).startswith(b"turn 30"): time.sleep(0.002)
                    assert os.stat(path).st_size == os.fstat(file.fileno()).st_size == len(open(path, "rb").read())
                    print(os.stat(path).st_size)
                    EOF
                    for n in 1 2; do
                        "$P" run --app com.example.a$n --domain $D -- python3 - $n granted/text x < $T/each.py > $T/out$n &
                        pids="${pids:-} $!"
                    done
                    python3 $T/each.py 0 $M/Work/text x > $T/out0; for p in $pids; do wait $p; done
                    cmp $T/out0 $T/out1; cmp $T/out0 $T/out2
                    # Renamed on the mount, it is the same file under its name in both.
                    mv $M/Work/text $M/Work/other; mv $M/Work $M/Else
                    for n in 1 2; do
                        "$P" run --app com.example.a$n --domain $D -- sh -c 'ls granted; cat granted/text'
                    done > $T/all
                    [ "$(grep -c '^text$' $T/all)" = 2 ]; [ "$(grep -c '^turn 30' $T/all)" = 2 ]
                    """)
            }
        }
    }
}
