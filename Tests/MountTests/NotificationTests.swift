import Foundation
import Testing

extension MountSuites {
    /// What `promisefs notify` says is shown by a server of notifications, as desktops have one.
    @Suite(.enabled(if: Machine.hasNotifications, "no dunst, notify-send, dbus-run-session or Xvfb"))
    struct NotificationTests {
        @Test(.timeLimit(.minutes(2))) func aConflictIsShownOnTheScreen() async throws {
            let options = MountedDomain.Options(prepare: #"echo one > "$C/plan.txt""#)
            try await MountedDomain.with(options) { domain in
                try await domain.shell("cat $M/plan.txt")
                try domain.setFaults(["offline=true"])
                try await domain.shell("echo mine > $M/plan.txt; echo theirs > $C/plan.txt")
                try domain.setFaults([])
                try await domain.shell(
                    """
                    cat > $T/session.sh << 'END'
                    trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
                    Xvfb -displayfd 3 -screen 0 800x600x24 -nolisten tcp 3> $T/display &
                    for n in $(seq 400); do [ ! -s $T/display ] || break; sleep 0.05; done
                    export DISPLAY=:$(cat $T/display); dunst 2> $T/dunst &
                    for n in $(seq 200); do ! dunstctl count > /dev/null 2>&1 || break; sleep 0.05; done
                    "$P" sync --wait $M; "$P" notify --every 200ms &
                    for n in $(seq 200); do ! dunstctl count displayed | grep -q '^1' || break; sleep 0.1; done
                    dunstctl close-all; sleep 0.5; dunstctl history > $T/shown
                    END
                    export T P M C; dbus-run-session -- bash -e $T/session.sh > $T/said 2>&1 || { cat $T/said >&2; false; }
                    grep -q '1 document is in conflict' $T/shown || { cat $T/said $T/shown >&2; false; }
                    grep -q PromiseFS $T/shown
                    """, seconds: 100)
            }
        }
    }
}

extension Machine {
    fileprivate static let hasNotifications = [
        "/usr/bin/dunst", "/usr/bin/dunstctl", "/usr/bin/notify-send", "/usr/bin/dbus-run-session", "/usr/bin/Xvfb",
    ].allSatisfy { FileManager.default.fileExists(atPath: $0) }
}
