import Foundation
import Testing

extension MountSuites {
    /// Locks of programs in several views and on the mount itself.
    @Suite struct ViewLockTests {
        /// `one ARGUMENT…` and `two ARGUMENT…` run the workload in views, `out ARGUMENT…` on the mount, in one folder.
        private func locks(_ script: String, seconds: Int = 90) async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    ID=com.example.editor; D=\(domain.domainName)
                    "$P" container add --app $ID --name Editor $D > /dev/null; E=$M/Editor/Documents
                    app() { "$P" run --app $ID --domain $D -- "$@"; }
                    one() { app sh -c 'cd container/Documents; exec python3 - "$@"' sh "$@" < $W/view-locks.py; }
                    two() { one "$@"; }
                    out() { (cd $E; exec python3 $W/view-locks.py "$@"); }
                    echo 0123456789012345678901234567890 > $E/f
                    # held WHO KIND MODE: a program that has the lock, until `free`.
                    held() { rm -f $E/x.*; "$1" hold $2 $3 f x > /dev/null & h=$!; within 10 "[ -e $E/x.held ]"; }
                    free() { touch $E/x.go; wait $h; }\n
                    """ + script, seconds: seconds)
            }
        }

        /// > Locks in a view hold in all views and on the mount, and those of the mount hold in views:
        @Test(.timeLimit(.minutes(3)), arguments: ["flock", "posix", "ofd"])
        func locksExcludeOneAnotherAcrossViewsAndTheMount(kind: String) async throws {
            try await locks(
                """
                for pair in 'one out' 'out one' 'one two'; do
                    set -- $pair
                    held $1 \(kind) ex
                    [ "$($2 try \(kind) ex f)" = no ]; [ "$($2 try \(kind) sh f)" = no ]
                    # Who waits is parked, and the view goes on; a signal ends it.
                    $2 wait \(kind) ex f > $T/got & w=$!
                    [ "$($2 wait \(kind)-alarm ex f)" = EINTR ]
                    [ "$(app cat container/Documents/f | wc -c)" = 32 ]; [ ! -s $T/got ]
                    free; wait $w; [ "$(cat $T/got)" = yes ]
                    # Shared with who reads.
                    held $1 \(kind) sh
                    [ "$($2 try \(kind) sh f)" = yes ]; [ "$($2 try \(kind) ex f)" = no ]
                    free; within 5 "[ \\"\\$($2 try \(kind) ex f)\\" = yes ]"
                done
                """, seconds: 150)
        }

        /// They were refused from then on.
        @Test(.timeLimit(.minutes(2))) func locksHoldAcrossViewsWhenAFolderAboveTheMountWasRenamed() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    mkdir -p "$T/old/m" "$T/cloud"
                    trap '"$P" unmount --force "$T/new/m" > /dev/null 2>&1 || umount -l "$T/new/m" "$T/old/m" || true' EXIT
                    "$P" mount --state-dir "$T/s" --domain locks "folder:$T/cloud" "$T/old/m" > /dev/null
                    "$P" container add --app com.example.e --name E locks > /dev/null
                    app() { "$P" run --app com.example.e --domain locks -- flock "$@"; }
                    E=$T/old/m/E/Documents; echo x > $E/f; app -n container/Documents/f true
                    mv "$T/old" "$T/new"; E=$T/new/m/E/Documents
                    app -n container/Documents/f true
                    flock -n $E/f sh -c 'echo > "$1"; exec sleep 60' sh "$T/held" & p=$!; within 10 '[ -e "$T/held" ]'
                    ! app -n container/Documents/f true; pkill -P $p; wait $p || true
                    within 5 "\"$P\" run --app com.example.e --domain locks -- flock -n container/Documents/f true"
                    """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aLockEndsWithItsProgram() async throws {
            try await locks(
                """
                for kind in flock posix ofd; do
                    rm -f $E/x.*
                    "$P" run --app $ID --domain $D -- sh -c 'cd container/Documents; exec python3 - "$@"' \
                        sh hold $kind ex f x < $W/view-locks.py > /dev/null & h=$!; within 10 '[ -e $E/x.held ]'
                    [ "$(out try $kind ex f)" = no ]; kill -9 $h; wait $h 2> /dev/null || true
                    within 10 "[ \\"\\$(out try $kind ex f)\\" = yes ]"
                done
                # By closing any descriptor, of fcntl(2)'s; with the last one of an open file, of the others.
                cat > $E/close.py << 'EOF'
                import fcntl, os, time
                first, second = os.open("f", os.O_RDWR), os.open("f", os.O_RDWR)
                fcntl.lockf(first, fcntl.LOCK_EX); open("step1", "w")
                while not os.path.exists("go1"): time.sleep(0.02)
                os.close(second); open("step2", "w")
                fcntl.flock(first, fcntl.LOCK_EX)
                third = os.dup(first); os.close(first); open("step3", "w")
                while not os.path.exists("go3"): time.sleep(0.02)
                os.close(third); open("step4", "w"); time.sleep(5)
                EOF
                (cd $E; rm -f x.*); app sh -c 'cd container/Documents; python3 close.py' & p=$!
                within 10 '[ -e $E/step1 ]'; [ "$(out try posix ex f)" = no ]; touch $E/go1
                within 10 '[ -e $E/step2 ]'; [ "$(out try posix ex f)" = yes ]
                within 10 '[ -e $E/step3 ]'; [ "$(out try flock ex f)" = no ]; touch $E/go3
                within 10 '[ -e $E/step4 ]'; within 2 '[ "$(out try flock ex f)" = yes ]'; kill $p; wait $p || true
                """)
        }

        /// > `F_GETLK` says where the other lock is.
        @Test(.timeLimit(.minutes(2))) func whatIsInTheWayIsTold() async throws {
            try await locks(
                """
                held one posix ex
                # Of a lock from elsewhere no process is told.
                [ "$(out ask posix ex f)" = 'ex 10 10 -1' ]; [ "$(one ask posix sh f)" = 'ex 10 10 0' ]; free
                held out posix sh
                [ "$(one ask posix sh f)" = 'none 10 10 0' ]; [ "$(one ask ofd ex f | cut -d' ' -f1-3)" = 'sh 10 10' ]; free
                # Within one view it is.
                cat > $E/ask.py << 'EOF'
                import fcntl, os, struct
                file = os.open("f", os.O_RDWR); fcntl.lockf(file, fcntl.LOCK_EX, 5, 10); end = os.pipe()
                if os.fork() == 0:
                    found = struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_GETLK, struct.pack("hhqqi4x", 1, 0, 0, 0, 0)))
                    os.write(end[1], repr(found == (1, 0, 10, 5, os.getppid())).encode()); os._exit(0)
                print(os.read(end[0], 100).decode())
                EOF
                [ "$(app sh -c 'cd container/Documents; python3 ask.py')" = True ]
                # A file without a name is locked, too.
                app python3 -c "
                import fcntl, os
                file = os.open('container/gone', os.O_RDWR | os.O_CREAT); os.unlink('container/gone')
                fcntl.lockf(file, fcntl.LOCK_EX); again = os.open('/proc/self/fd/%d' % file, os.O_RDWR)
                fcntl.flock(file, fcntl.LOCK_EX)
                try: fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB); raise SystemExit('twice')
                except BlockingIOError: pass"
                """)
        }

        @Test(.timeLimit(.minutes(3))) func whatIsDoneUnderALockIsDoneByOneAtATime() async throws {
            try await locks(
                """
                echo 0 > $E/n
                for who in one two out out; do $who count n 200 & done; wait
                [ "$(cat $E/n)" = 800 ]
                # A database by two programs, which locks ranges of its own.
                sql='import sqlite3, sys
                base = sqlite3.connect("base.db", timeout=60, isolation_level=None)
                base.execute("create table if not exists row (who)")
                for n in range(50):
                    base.execute("begin immediate"); base.execute("insert into row values (?)", (sys.argv[1],))
                    base.execute("commit")'
                (cd $E; python3 -c "$sql" out) & app sh -c 'cd container/Documents; python3 -c "$@"' sh "$sql" in &
                app sh -c 'cd container/Documents; python3 -c "$@"' sh "$sql" in; wait
                (cd $E; python3 -c 'import sqlite3
                base = sqlite3.connect("base.db"); check = base.execute("pragma integrity_check").fetchone()
                count = base.execute("select count(*) from row").fetchone()
                assert (check, count) == (("ok",), (150,)), (check, count)')
                """, seconds: 150)
        }

        @Test(.timeLimit(.minutes(2))) func locksInAViewEndWithTheDaemon() async throws {
            try await MountedDomain.with { domain in
                let prelude = """
                    ID=com.example.editor; D=\(domain.domainName); E=$M/Editor/Documents
                    out() { (cd $E; exec python3 $W/view-locks.py "$@"); }\n
                    """
                try await domain.shell(
                    prelude
                        + """
                        "$P" container add --app $ID --name Editor $D > /dev/null; echo x > $E/f
                        "$P" run --app $ID --domain $D -- sh -c 'cd container/Documents; exec python3 - hold posix ex f x' \\
                            < $W/view-locks.py > /dev/null 2>&1 & disown
                        within 10 "[ -e $E/x.held ]"; [ "$(out try posix ex f)" = no ]
                        """)
                try await domain.kill9()
                try await domain.remount()
                try await domain.shell(prelude + "within 10 '[ \"$(out try posix ex f)\" = yes ]'")
            }
        }

        /// > What programs append (`O_APPEND`) in views and on the mount is all there,
        @Test(.timeLimit(.minutes(3)), arguments: [[], ["--no-passthrough"]])
        func whatIsAppendedFromSeveralSidesIsAllThere(arguments: [String]) async throws {
            try await MountedDomain.with(.init(arguments: arguments)) { domain in
                try await domain.shell(
                    """
                    ID=com.example.editor; D=\(domain.domainName); E=$M/Editor/Documents
                    "$P" container add --app $ID --name Editor $D > /dev/null
                    cat > $E/append.py << 'EOF'
                    import os, sys, time
                    file = os.open("log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
                    while not os.path.exists("go"): time.sleep(0.01)
                    for n in range(300): os.write(file, b"%s %d %s\\n" % (sys.argv[1].encode(), n, b"x" * (n * 37 % 5000)))
                    EOF
                    for who in one two; do
                        "$P" run --app $ID --domain $D -- sh -c "cd container/Documents; python3 append.py $who" &
                    done
                    for who in three four; do (cd $E; python3 append.py $who) & done
                    sleep 2; touch $E/go; wait
                    "$P" sync --wait $M; cmp $E/log $C/Editor/Documents/log
                    python3 - $E/log \(arguments.isEmpty) << 'EOF'
                    import collections, sys
                    lengths = [n * 37 % 5000 for n in range(300)] * 4
                    log = open(sys.argv[1]).read(); letters = collections.Counter(log)
                    assert letters["x"] == sum(lengths) and letters["\\n"] == 1200, letters
                    # Through the mount's pages the kernel may cut one where a page ends.
                    if sys.argv[2] == "true":
                        lines = log.splitlines(); assert len({line.split(" x")[0] for line in lines}) == 1200
                        assert sorted(line.count("x") for line in lines) == sorted(lengths)
                    EOF
                    """, seconds: 100)
            }
        }
    }
}
