import Foundation
import Testing

extension MountSuites {
    /// What shells, scripts and services hand to a command: streams, limits, files that are none.
    @Suite struct SurroundingsTests {
        /// The next file that was opened had the number of what the caller had closed, and got what was said.
        @Test(.timeLimit(.minutes(1))) func whatIsSaidToAClosedStreamGoesIntoNoFile() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    echo a > "$C/a"
                    PROMISEFS_LOG=trace "$P" mount --foreground --domain closed --state-dir "$T/s" folder:$C "$M" <&- >&- 2>&- &
                    within 20 '[ -e "$M/a" ]'; cat "$M/a"
                    for p in $(pgrep -f -- "--state-dir $T/s"); do
                        for n in 0 1 2; do [ "$(readlink /proc/$p/fd/$n)" = /dev/null ]; done
                    done
                    rc=0; "$P" status closed >&- 2> "$T/said" || rc=$?; [ $rc = 1 ]
                    grep -q '^promisefs: the output cannot be written: Bad file' "$T/said"
                    "$P" status closed 2>&- | grep -q '^closed on'
                    rc=0; "$P" status /usr 2>&- || rc=$?; [ $rc = 3 ]
                    "$P" unmount --wait closed; wait
                    """, seconds: 40)
            }
        }

        /// It ended with 1, and unmounted by `unmount` alone, "without its daemon".
        @Test(.timeLimit(.minutes(1))) func aMountWithAnotherSourceOrAClosedStreamIsOneAndIsFound() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    echo a > "$C/a"
                    "$P" mount --domain sourced --state-dir "$T/s" -o fsname=/dev/sourced folder:$C "$M" >&-
                    grep "^/dev/sourced $M fuse.promisefs" /proc/self/mounts
                    "$P" status "$M" | grep "^sourced on"; "$P" status sourced > /dev/null; ls "$M"
                    "$P" find "$M" a | grep -x "$M/a"
                    "$P" status --json /dev/sourced | grep -q '"mountPoint":'
                    "$P" unmount --wait sourced; not grep /dev/sourced /proc/self/mounts
                    not "$P" --json 2> "$T/said"; grep 'say which command' "$T/said"
                    """, seconds: 40)
            }
        }

        /// The holder met the soft limit of a shell, and ended "without saying why".
        @Test(.timeLimit(.minutes(1))) func softLimitsOfAShellAreNotTheMounts() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    echo a > "$C/a"
                    (ulimit -Sn 20; ulimit -Sf 100; "$P" mount --domain limited --state-dir "$T/s" folder:$C "$M" > /dev/null)
                    head -c 1000000 /dev/zero > "$M/large"; [ "$(cat "$M/a")" = a ]
                    "$P" sync --wait "$M"; cmp "$M/large" "$C/large"; "$P" unmount --wait limited
                    """, seconds: 40)
            }
        }

        /// They waited for somebody to write to it, for good.
        @Test(.timeLimit(.minutes(1))) func aFifoInThePlaceOfSettingsHoldsNobodyUp() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    echo a > "$C/a"; mkdir -p "$XDG_CONFIG_HOME/promisefs"; mkfifo -m 600 "$XDG_CONFIG_HOME/promisefs/credentials"
                    mkfifo -m 600 "$T/fifo"; export PROMISEFS_CONFIG="$T/fifo"
                    timeout 20 "$P" mount --domain fifo --state-dir "$T/s" folder:$C "$M" > /dev/null; cat "$M/a"
                    timeout 20 "$P" doctor --no-check || [ $? = 1 ]; "$P" unmount --wait fifo
                    rc=0; timeout 20 "$P" mount webdav+http://localhost:1/ "$M" 2> /dev/null || rc=$?; [ $rc = 4 ]
                    # What somebody writes to one is read.
                    printf '[domains.piped]\nprovider = "folder:%s"\nmountpoint = "%s"\n' "$C" "$M" > "$T/fifo" &
                    sleep 0.2; timeout 20 "$P" mount piped > /dev/null; wait; cat "$M/a"; "$P" unmount --wait piped
                    """, seconds: 60)
            }
        }
    }
}
