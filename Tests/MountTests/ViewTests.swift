import Foundation
import Testing

extension MountSuites {
    /// Applications in their sandbox, each with a view of the domain of its own.
    @Suite struct ViewTests {
        /// `app COMMAND…` runs it as an application that has a container, `Editor`.
        private func application(_ domain: MountedDomain) -> String {
            """
            ID=com.example.editor; D=\(domain.domainName)
            app() { "$P" run --app $ID --domain $D -- "$@"; }
            [ -d "$M/Editor" ] || "$P" container add --app $ID --name Editor $D > /dev/null\n
            """
        }

        private func view(
            _ script: String, prepare: String = "echo secret > $C/secret; mkdir $C/Private; echo x > $C/Private/x"
        ) async throws {
            try await MountedDomain.with(.init(prepare: prepare)) { domain in
                try await domain.shell(application(domain) + script)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aProgramSeesItsContainerAndNothingElseOfTheMachine() async throws {
            try await view(
                """
                echo hello > $M/Editor/Documents/text
                app sh -c 'ls -A . ; cat container/Documents/text; ls -A /' > $T/seen
                all='container granted imports hello bin dev documents etc home lib lib64 proc run sbin tmp usr'
                diff <(printf '%s\\n' $all) \\
                    <(grep -v lib32 $T/seen)
                app sh -c '[ "$(id -u)" != 0 ] && [ "$PROMISEFS_VIEW" = /documents ] && [ "$PROMISEFS_APP" = com.example.editor ]'
                app sh -c '! grep -v -e fuse.promisefs-view -e /run/promisefs.sock /proc/self/mounts | grep -q promisefs'
                # Without a network, and as an application that has nothing.
                app sh -c '! cat < /dev/tcp/127.0.0.1/22' 2> /dev/null
                [ "$("$P" run --app com.example.other --domain $D -- ls -A /documents | tr '\\n' ' ')" = 'granted imports ' ]
                # Exit statuses are the command's.
                s=0; app sh -c 'exit 9' || s=$?; [ $s = 9 ]
                s=0; app nothing-of-that-name 2> /dev/null || s=$?; [ $s = 127 ]
                s=0; app /etc/passwd 2> /dev/null || s=$?; [ $s = 126 ]
                """)
        }

        @Test(.timeLimit(.minutes(2))) func viewAndMountShowOneAndTheSameTreeAtAnyTime() async throws {
            try await view(
                """
                E=$M/Editor/Documents
                echo one > $E/a; cat $E/a > /dev/null; stat $E/a > /dev/null; ls -l $E > /dev/null
                # Written inside: the mount's kernel has kept the page, the size and the listing.
                app sh -c 'cd container/Documents; echo second >> a; mkdir new; mv a new/b; ln -s new/b link; echo x > c; rm c'
                [ "$(cat $E/new/b)" = "$(printf 'one\\nsecond')" ]; [ ! -e $E/a ]; [ ! -e $E/c ]; [ -L $E/link ]
                [ "$(stat -c %s $E/new/b)" = 11 ]; [ "$(ls $E | tr '\\n' ' ')" = 'link new ' ]
                # Written outside while a program inside has it open, and the other way round.
                cat > $T/inside.sh << 'EOF'
                cd /documents/container/Documents
                exec 3<> new/b; read first <&3; echo "$first" > said
                until [ -e go ]; do sleep 0.05; done
                cat new/b > seen; echo third >> new/b; stat -c %s new/b > size
                EOF
                mkdir -p $E; cp $T/inside.sh $E/inside.sh
                app sh container/Documents/inside.sh & p=$!
                within 10 '[ -s $E/said ]'; [ "$(cat $E/said)" = one ]
                exec 4< $E/new/b; cat <&4 > /dev/null
                printf 'ONE' | dd of=$E/new/b conv=notrunc status=none; touch $E/go; wait $p
                grep -q ONE $E/seen; grep -q third $E/new/b; [ "$(cat $E/size)" = "$(stat -c %s $E/new/b)" ]
                exec 4<&-
                # The provider has it all.
                "$P" sync --wait $M; diff -r $E $C/Editor/Documents
                # Owner and group stay those of the domain.
                [ "$(stat -c %u:%g $E/new)" = "$(stat -c %u:%g $M)" ]
                """)
        }

        @Test(.timeLimit(.minutes(2))) func aProgramThatWatchesTheMountHearsOfWhatAViewDoes() async throws {
            try await view(
                """
                python3 - $M/Editor/Documents > $T/heard << 'EOF' &
                import ctypes, os, select, sys, struct, time
                libc = ctypes.CDLL(None); watch = libc.inotify_init1(os.O_NONBLOCK)
                libc.inotify_add_watch(watch, sys.argv[1].encode(), 0x3C2)
                print("watching", flush=True)
                end = time.time() + 60
                while time.time() < end:
                    if not select.select([watch], [], [], 0.2)[0]: continue
                    data = os.read(watch, 65536)
                    while data:
                        _, mask, _, size = struct.unpack('iIII', data[:16])
                        print(hex(mask & 0xFFF), data[16:16 + size].rstrip(b'\\0').decode(), flush=True)
                        data = data[16 + size:]
                EOF
                watcher=$!; within 10 'grep -q watching $T/heard'
                app sh -c 'cd container/Documents; echo 1 > a; sleep 0.4; mv a b; sleep 0.4; rm b'
                within 8 'grep -q "0x100 a" $T/heard && grep -q "0x80 b" $T/heard && grep -q "0x200 b" $T/heard'
                kill $watcher; wait $watcher || true
                """)
        }

        @Test(.timeLimit(.minutes(2))) func aViewEndsWithItsLaunchAndLeavesNothing() async throws {
            try await view(
                """
                none() { [ ! -e $M/.promisefs-views ] && ! pgrep -x promisefs-view > /dev/null; }
                for at in 0 0.02 0.05 0.1 0.2 0.4; do
                    "$P" run --app $ID --domain $D -- sh -c 'echo x > imports/copy; echo y > granted/half
                    echo $$ > container/began; sleep 30' &
                    p=$!; sleep $at; kill -9 $p; wait $p 2> /dev/null || true
                done
                within 10 none
                # The file of a program that has ended stays where it belongs, and is not busy.
                "$P" sync --wait $M; [ "$("$P" pending --excluded --json $M | grep -c copy)" = 0 ]
                # By a signal that it may catch, too.
                app sh -c 'trap "exit 3" TERM; echo up > container/up; while :; do sleep 0.1; done' & p=$!
                within 10 '[ -e $M/Editor/up ]'; kill $p; wait $p || true; within 10 none
                """)
        }

        @Test(.timeLimit(.minutes(2))) func viewsEndWithTheirDaemonAndWhatWasWrittenIsThere() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    application(domain)
                        + """
                        app sh -c 'echo kept > container/kept; echo up > container/up
                        while ls container > /dev/null 2>&1; do sleep 0.05; done; sleep 1' &
                        echo $! > $T/pid; within 10 '[ -e $M/Editor/up ]'
                        """)
                try await domain.kill9()
                try await domain.remount()
                try await domain.shell(
                    application(domain)
                        + """
                        within 10 'gone $(cat $T/pid)'; [ "$(cat $M/Editor/kept)" = kept ]
                        within 10 '[ ! -e $M/.promisefs-views ]'; app true
                        """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aDomainIsBusyWhileAnApplicationHasAView() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    application(domain)
                        + """
                        app sh -c 'echo up > container/up; sleep 60' & within 10 '[ -e $M/Editor/up ]'
                        s=0; "$P" unmount $M 2> $T/said || s=$?; [ $s != 0 ]
                        grep -q "com.example.editor runs with a view" $T/said
                        [ -e $M/Editor/up ]
                        "$P" unmount --lazy $M; within 10 '! kill -0 $! 2> /dev/null'
                        within 10 '[ "$(cat $C/Editor/up 2> /dev/null)" = up ] || ! pgrep -f "$S" > /dev/null'
                        """)
                try await domain.remount()
                try await domain.shell("[ ! -e $M/.promisefs-views ]; [ \"$(cat $M/Editor/up)\" = up ]")
            }
        }

        /// Two hundred, as many as a busy desktop has programs: 20 MiB, of which views are 6 and the sockets the rest.
        @Test(.timeLimit(.minutes(3))) func twoHundredViewsAreSmall() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    application(domain)
                        + """
                        memory() { awk '/VmRSS/ { print $2 }' \\
                            /proc/$("$P" status --json $M | sed 's/.*"processID":\\([0-9]*\\).*/\\1/')/status; }
                        app true; before=$(memory)
                        for n in $(seq 200); do
                            app sh -c "echo $n > container/Documents/$n; sleep 600" &
                            [ $((n % 8)) = 0 ] && within 20 "[ -s $M/Editor/Documents/$n ]"
                        done
                        within 20 '[ $(ls $M/Editor/Documents | wc -l) = 200 ]'
                        [ $(ls $M/.promisefs-views | wc -l) = 200 ]
                        [ $(($(memory) - before)) -lt 23552 ]
                        kill $(jobs -p); within 20 '[ ! -e $M/.promisefs-views ]'
                        """, seconds: 150)
            }
        }
    }
}
