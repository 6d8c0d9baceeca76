import Foundation
import Testing

extension MountSuites {
    /// What is installed works as a whole, by all the ways that a machine mounts things.
    @Suite struct InstallTests {
        @Test(.timeLimit(.minutes(2))) func whatIsInstalledMountsKnowsItsDocumentsAndGoesWithoutATrace() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    cd "$R"; export DESTDIR="$T/root" PREFIX=/usr BUILT="$(dirname "$P")"
                    make --no-print-directory install; A="$T/root/usr"; Q="$A/bin/promisefs"
                    echo one > "$C/file"
                    "$Q" mount --state-dir "$S" --domain '\(domain.domainName)' "folder:$C" "$M"; [ "$(cat "$M/file")" = one ]
                    pgrep -f "^promisefs-holder $M " | while read -r holder; do
                        [ "$(readlink -f "/proc/$holder/exe")" = "$A/libexec/promisefs/promisefs-holder" ]
                    done
                    "$Q" unmount "$M"
                    "$Q" help topics | grep -qx semantics; "$Q" help SEMANTICS | head -1 | grep -q '^# '
                    "$Q" help mount | grep -q 'USAGE: promisefs mount'
                    status=0; "$Q" help nothing 2> "$T/said" || status=$?; [ "$status" = 2 ]; grep -q semantics "$T/said"
                    bash -n "$A/share/bash-completion/completions/promisefs"
                    grep -q '^#compdef' "$A/share/zsh/site-functions/_promisefs"
                    grep -q 'ExecStart=/usr/bin/promisefs mount --foreground %i' "$A/lib/systemd/user/promisefs@.service"
                    for command in $("$Q" --experimental-dump-help | python3 -c '
                    import json, sys
                    print(*[c["commandName"] for c in json.load(sys.stdin)["command"]["subcommands"] if c["shouldDisplay"]])'); do
                        [ "$command" = help ] || grep -q "^.SH SYNOPSIS" "$A/share/man/man1/promisefs-$command.1"
                    done
                    grep -q 'ExecStart=/usr/bin/promisefs notify' "$A/lib/systemd/user/promisefs-notify.service"
                    [ -e "$A/lib/systemd/user/graphical-session.target.wants/promisefs-notify.service" ]
                    [ "$(readlink "$A/sbin/mount.promisefs")" = ../bin/promisefs ]
                    service="$A/share/dbus-1/services/org.freedesktop.impl.portal.desktop.promisefs.service"
                    grep -qx 'Exec=/usr/libexec/promisefs/promisefs-portal' "$service"
                    [ -x "$A/libexec/promisefs/promisefs-portal" ]; [ -e "$A/share/xdg-desktop-portal/portals/promisefs.portal" ]
                    echo mine > "$A/share/promisefs/mine"
                    mkdir -p "$A/share/fish/vendor_completions.d"; echo >"$A/share/fish/other"
                    make --no-print-directory uninstall
                    # Folders that were made go, too, but for those in which others have something.
                    left=$(cd "$A"; find . -mindepth 2 | sort | tr '\\n' ' ')
                    [ "$left" = './share/fish ./share/fish/other ./share/promisefs ./share/promisefs/mine ' ]
                    # Two words were two words to systemd and to the session bus.
                    PREFIX='/opt/my & own' make --no-print-directory install; B="$T/root/opt/my & own"
                    grep -qxr 'ExecStart="/opt/my & own/bin/promisefs" mount --foreground %i' "$B/lib/systemd/system"
                    grep -qxr 'Exec="/opt/my & own/libexec/promisefs/promisefs-portal"' "$B/share/dbus-1/services"
                    PREFIX='/opt/my & own' make --no-print-directory uninstall; [ ! -e "$T/root/opt" ]
                    """, seconds: 100)
            }
        }

        /// As `make deb` builds them: what one of them needs of our own C modules is compiled into it.
        @Test(.timeLimit(.minutes(2)), .enabled(if: Machine.hasPackageTools, "no dpkg-dev, or no C compiler"))
        func theSmallProgramsOfThePackageNeedNothingOfSwift() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    mkdir "$T/built"; "$R/scripts/small-programs" "$T/built"
                    for name in backing echo holder locks view; do
                        ldd "$T/built/promisefs-$name" > "$T/libraries"; not grep -i -e swift -e 'not found' "$T/libraries"
                    done
                    """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func fstabMountsWithOptionsOfOthersAndTellsWhatMountWants() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                let name = domain.domainName
                try await domain.shell(
                    """
                    ln -s "$P" "$T/mount.promisefs"; ln -s mount.promisefs "$T/mount.fuse.promisefs"; echo one > "$C/file"
                    options="rw,_netdev,nofail,user,x-systemd.automount,nodev,domain=\(name),state-dir=$S"
                    "$T/mount.promisefs" "folder:$C" "$M" -s -v -o "$options,whatever" > "$T/said"
                    grep -q '^promisefs mount' "$T/said"
                    [ "$(cat "$M/file")" = one ]; grep "$M" /proc/self/mountinfo | grep -q nodev
                    "$T/mount.fuse.promisefs" "folder:$C" "$M" -t fuse.promisefs -o "$options"
                    "$P" unmount "$M"
                    status=0; "$T/mount.promisefs" "folder:$C" "$M" -o whatever 2> "$T/said" || status=$?
                    [ "$status" = 1 ]
                    grep -q "'whatever' is not known" "$T/said"
                    status=0; "$T/mount.promisefs" "folder:$C/missing" "$M" -o "$options" 2> "$T/said" || status=$?
                    [ "$status" = 32 ]
                    "$T/mount.promisefs" "folder:$C" "$M" -f -o "$options"; not mountpoint -q "$M"
                    settings="$XDG_CONFIG_HOME/promisefs"; mkdir -p "$settings"
                    printf '[domains.\(name)]\\nprovider = "folder:%s"\\nstate-dir = "%s"\\n' "$C" "$S" > "$settings/config.toml"
                    [ -z "$("$T/mount.promisefs" \(name) "$M" -o ro)" ]; [ "$(cat "$M/file")" = one ]; not touch "$M/new"
                    "$P" unmount "$M"
                    """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aServiceSaysThatItIsReadyThatItLivesAndThatItStops() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    echo one > "$C/file"
                    python3 "$W/service-manager.py" '[ "$(cat "$M/file")" = one ]; sleep 2' \\
                        "$P" mount --foreground --state-dir "$S" --domain '\(domain.domainName)' "folder:$C" "$M" 2> "$T/log"
                    not mountpoint -q "$M"
                    """)
            }
        }

        /// systemd is not asked: `systemctl` is a script that writes down its words.
        @Test(.timeLimit(.minutes(1))) func enableStartsTheUnitOfADomainThatIsConfigured() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    mkdir -p "$T/bin" "$XDG_CONFIG_HOME/promisefs"; export PATH="$T/bin:$PATH" WORDS="$T/words"
                    printf '#!/bin/sh\\necho "$@" >> "$WORDS"; exit ${STATUS:-0}\\n' > "$T/bin/systemctl"
                    chmod +x "$T/bin/systemctl"; settings="$XDG_CONFIG_HOME/promisefs/config.toml"
                    not "$P" enable work 2> "$T/said"; grep -q 'no configuration file' "$T/said"
                    printf '[domains.work]\\nmountpoint = "/nowhere"\\n[domains.bare]\\n' > "$settings"
                    "$P" enable work; "$P" enable --later work; "$P" disable work
                    not "$P" enable bare; not "$P" enable other; STATUS=1 not "$P" enable work; not "$P" disable a/b
                    scope=$([ "$(id -u)" = 0 ] || echo "--user ")
                    printf "$scope%s\\n" '--quiet enable --now promisefs@work.service' '--quiet enable promisefs@work.service' \\
                        '--quiet disable --now promisefs@work.service' '--quiet enable --now promisefs@work.service' \\
                        | diff - <(head -4 "$WORDS")
                    # Where systemd does not run, it was done, and then the command failed.
                    printf '#!/bin/sh\ncase "$*" in *--now*) exit 1;; esac\n' > "$T/bin/systemctl"
                    if [ "$(id -u)" = 0 ] && [ ! -e /run/systemd/system ]; then
                        "$P" enable work > "$T/said"; not grep -q now "$T/said"; "$P" disable work
                    fi
                    # A unit is not to try for ever to mount what has gone from the configuration.
                    status=0; "$P" mount gone 2> "$T/said" || status=$?; [ $status = 2 ]; grep -q "'gone' is no domain" "$T/said"
                    """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func aTemporaryMountServesACommandWithFaultsAndIsGoneAfterwards() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    export TMPDIR="$T"
                    "$P" try -- bash -ec 'cat "$PROMISEFS_MOUNT/Welcome.md" | grep -q Welcome; echo more > "$PROMISEFS_MOUNT/new"
                        "$P" sync --wait "$PROMISEFS_MOUNT"; [ "$(cat "$PROMISEFS_CLOUD/new")" = more ]'
                    status=0; "$P" try -- sh -c 'exit 9' || status=$?; [ "$status" = 9 ]
                    mkdir "$T/mine"; echo a > "$T/mine/a"; echo b > "$T/mine/b"; echo offline=true > "$T/faults"
                    "$P" try --content "$T/mine" --fault "$T/faults" -- bash -ec 'cd "$PROMISEFS_MOUNT"; [ ! -e Welcome.md ]
                        ! cat a 2> "$T/said"; : > "$PROMISEFS_FAULTS"
                        for n in 1 2 3 4 5 6 7 8 9; do cat a && break; sleep 0.5; done
                        [ "$(cat a)" = a ]; echo delay=1s > "$PROMISEFS_FAULTS"; SECONDS=0; cat b; [ "$SECONDS" -ge 1 ]'
                    grep -q 'Network is down' "$T/said"; [ "$(cat "$T/mine/a")" = a ]
                    [ -z "$(ls -d "$T"/promisefs-try-* 2> /dev/null)" ]; not grep -q ' try-' /proc/self/mountinfo
                    # Also after the end of all that could have removed it.
                    (exec setsid "$P" try -- sh -c 'cut -d" " -f5 /proc/$$/stat > "$T/try"; exec sleep 60') &
                    for n in $(seq 200); do [ ! -s "$T/try" ] || break; sleep 0.05; done
                    grep -q ' try-' /proc/self/mountinfo; kill -9 -- -$(cat "$T/try")
                    for n in $(seq 100); do [ -n "$(ls -d "$T"/promisefs-try-* 2> /dev/null)" ] || break; sleep 0.1; done
                    [ -z "$(ls -d "$T"/promisefs-try-* 2> /dev/null)" ]; not grep -q ' try-' /proc/self/mountinfo
                    within 10 '! pgrep -f -- "try --forget $T/" > /dev/null'
                    not "$P" try --content "$T/missing" -- true
                    # It waited for somebody to write into the pipe.
                    mkdir "$T/odd"; mkfifo "$T/odd/fifo"; s=0
                    timeout 20 "$P" try --content "$T/odd" -- true 2> "$T/said" || s=$?
                    [ $s = 2 ]; grep -q 'odd/fifo.*is no file' "$T/said"
                    """)
            }
        }

        @Test(.timeLimit(.minutes(2))) func theExampleOfTheCommandRuns() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    export TMPDIR="$T" PROMISEFS_EXECUTABLE="$P"; mkdir -p "$T/content/below"
                    echo 'a b c' > "$T/content/one.txt"; echo 'd e' > "$T/content/below/two.txt"
                    "$P" try --content "$T/content" -- sh "$R/Examples/WordCount/test_wordcount.sh" > "$T/said"
                    grep -qx 'wordcount is right' "$T/said"
                    [ -z "$(ls -d "$T"/promisefs-try-* 2> /dev/null)" ]
                    """, seconds: 90)
            }
        }

        @Test(.timeLimit(.minutes(2)), .enabled(if: Machine.hasPytest, "Python has no pytest"))
        func theExampleOfTheFixtureRuns() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    export TMPDIR="$T" PYTHONPATH="$R/clients/python" PROMISEFS_EXECUTABLE="$P"; cd "$T"
                    python3 -m pytest -q -p promisefs.pytest_plugin -p no:cacheprovider "$R/Examples/WordCount" \\
                        | grep -q '5 passed'
                    [ -z "$(ls -d "$T"/promisefs-try-* 2> /dev/null)" ]
                    """, seconds: 90)
            }
        }

        @Test(.timeLimit(.minutes(2))) func fileManagersShowStatesAndOfferActionsWithoutFetching() async throws {
            var options = MountedDomain.Options()
            options.prepare = "mkdir \"$C/folder\"; echo here > \"$C/here.txt\"; echo there > \"$C/there.txt\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    "cat \"$M/here.txt\" > /dev/null; python3 \"$R/clients/desktop/check_files.py\" \"$M\"")
                #expect(try await domain.status().bytesFetched == 5)
            }
        }

        @Test(.timeLimit(.minutes(4)), .enabled(if: Machine.hasThunar, "needs Thunar with its Python, GVfs and an X server"))
        func thunarShowsEmblemsFetchesNothingByLookingAndRunsEachActionThatIsClicked() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                let words = "python3 \"$W/emblems-in-a-file-manager.py\" --executable \"$P\" --folder \"$T\""
                let result = try await domain.shell(words, seconds: 200)
                #expect(result.output.contains("emblems and actions are right"))
            }
        }
    }
}

extension Machine {
    fileprivate static let hasPackageTools = ["cc", "dpkg-buildflags"].allSatisfy {
        FileManager.default.isExecutableFile(atPath: "/usr/bin/\($0)")
    }
}
