import Foundation
import Testing

extension MountSuites {
    /// Two users and root on one machine. A domain's name was the machine's: the second `cloud` was refused, and commands met the
    /// daemons of others.
    @Suite(.enabled(if: Machine.isRoot && WebDAVServer.canRun, "root becomes others, and each mounts a server"))
    struct SeveralUserTests {
        /// `as USER COMMAND…`, each with a home, a runtime folder and mount points of its own. Everybody may use `/dev/fuse`.
        private static let users = """
            set -e; cd /
            fuse="$(dirname "$T")/fuse"; mknod "$fuse" c 10 229; chmod 666 "$fuse"; mount --bind "$fuse" /dev/fuse
            chmod 755 "$T/.." "$T"; mkdir "$T/bin"; trap '' HUP
            for n in promisefs promisefs-holder promisefs-echo promisefs-locks promisefs-view; do
                cp "$(dirname "$P")/$n" "$T/bin/"
            done
            P="$T/bin/promisefs"
            for u in root nobody daemon; do
                mkdir -p "$T/$u/home" "$T/$u/run" "$T/$u/cloud" "$T/$u/dav"; chown -R $u "$T/$u"; chmod 700 "$T/$u/run"
            done
            as() {
                local u=$1; shift
                setpriv --reuid=$u --regid=$(id -g $u) --clear-groups env -i PATH="$PATH" LC_ALL=C.UTF-8 HOME="$T/$u/home" \\
                    XDG_RUNTIME_DIR="${RUN-$T/$u/run}" PROMISEFS_STATE_DIR="$T/$u/home/states" NO_COLOR=1 \\
                    PROMISEFS_USER="$PROMISEFS_USER" PROMISEFS_PASSWORD="$PROMISEFS_PASSWORD" T="$T" P="$P" U="$U" "$@"
            }
            within() {
                local end=$(( $(date +%s) + $1 )); shift
                until eval "$*" > /dev/null 2>&1; do
                    [ "$(date +%s)" -lt $end ] || { echo "not in time: $*" >&2; return 1; }
                    sleep 0.2
                done
            }
            not() { if "$@"; then echo "succeeded: $*" >&2; return 1; fi; }
            ended() {
                for u in nobody daemon root; do as $u "$P" unmount --all --lazy > /dev/null 2>&1 || true; done
                rm -rf /tmp/promisefs-$(id -u nobody) /tmp/promisefs-$(id -u daemon)
            }
            trap ended EXIT

            """

        private static func run(_ script: String, _ server: WebDAVServer) async throws {
            try await MountedDomain.with(server.options(), mounts: false) { domain in
                try await domain.shell("cat > \"$T/script\" <<'SCRIPT'\n\(users)\(script)\nSCRIPT")
                try await domain.shell("unshare --mount --propagation private bash \"$T/script\"", seconds: 200)
            }
        }

        @Test(.timeLimit(.minutes(5))) func twoUsersAndRootHaveDomainsOfTheSameNames() async throws {
            let script = """
                for u in root nobody daemon; do
                    as $u "$P" mount "$T/$u/cloud"
                    as $u "$P" mount --domain dav --poll-interval 1s --upload-delay 200ms "webdav+$U" "$T/$u/dav"
                    as $u sh -c "echo of $u > '$T/$u/dav/$u'; echo of $u > '$T/$u/cloud/mine'"
                done
                # One account, three machines in one: each sees what the others have.
                for u in root nobody daemon; do
                    for other in root nobody daemon; do
                        within 30 "as $u sh -c '[ \\"\\$(cat \\"$T/$u/dav/$other\\")\\" = \\"of $other\\" ]'"
                    done
                    [ "$(as $u cat "$T/$u/home/.local/share/promisefs/cloud/mine")" = "of $u" ] ||
                        within 20 "as $u grep -q 'of $u' '$T/$u/home/.local/share/promisefs/cloud/mine'"
                done
                # Each is told of its own, and root of everybody's.
                for u in nobody daemon; do
                    as $u "$P" status --json > "$T/status-$u"; [ "$(grep -o '"mountPoint":' "$T/status-$u" | wc -l)" = 2 ]
                    as $u "$P" status | grep "'dav' of root"; as $u "$P" status cloud | grep -q "on $T/$u/cloud"
                    as $u "$P" sync --wait
                done
                as root "$P" status > "$T/all"; [ "$(grep -c 'of nobody$' "$T/all")" = 2 ]; grep -q "on $T/root/dav$" "$T/all"
                as root "$P" status cloud | grep -q "on $T/root/cloud$"; as root "$P" status "$T/daemon/cloud" | grep -q "of"
                # Root reaches the daemon of the mount that is meant, though its own has a domain of that name.
                for u in nobody daemon root; do
                    as root "$P" status "$T/$u/cloud" | grep -q "^cloud on $T/$u/cloud"
                    as root "$P" info "$T/$u/cloud/mine" | grep -q "owner *$(id -u $u):"
                done
                as root "$P" fetch "$T/nobody/dav/nobody" "$T/daemon/dav/daemon" "$T/root/dav/root"
                as root "$P" info --key kMDItemFSName "$T/nobody/cloud/mine" "$T/daemon/cloud/mine" > "$T/all"
                [ "$(grep -c '/cloud/mine$' "$T/all")" = 2 ]
                rc=0; as root "$P" coordinate read "$T/nobody/cloud/mine" "$T/root/cloud/mine" -- true 2> "$T/said" || rc=$?
                [ $rc = 2 ]; grep -q 'about one domain' "$T/said"
                # The kernel says no for the folder, and no daemon was asked.
                as nobody mkdir -p "$T/nobody/cloud/a/b"; as root "$P" info "$T/nobody/cloud/a/b"
                rc=0; as daemon "$P" info "$T/nobody/cloud/a/b" 2> "$T/said" || rc=$?; cat "$T/said"
                [ $rc = 5 ]; grep -q 'mounted by nobody' "$T/said"
                # What is somebody else's is said to be, and left alone.
                for what in status sync unmount; do
                    rc=0; as nobody "$P" $what "$T/root/dav" 2> "$T/said" || rc=$?; cat "$T/said"
                    [ $rc = 5 ]; grep -q 'mounted by root' "$T/said"
                done
                as nobody "$P" unmount --all --wait; as nobody "$P" status 2>&1 | grep -q 'no domain is mounted'
                rc=0; as nobody "$P" status cloud 2> "$T/said" || rc=$?; [ $rc = 3 ]; grep -q 'not by you' "$T/said"
                as nobody "$P" domain list --json | grep -q '"domain":"dav"'
                for u in root daemon; do as $u cat "$T/$u/dav/nobody"; as $u "$P" status dav | grep -q "on $T/$u/dav"; done
                as root "$P" unmount cloud dav; as daemon cat "$T/daemon/dav/root"; as root "$P" unmount "$T/daemon/cloud"
                as daemon "$P" unmount dav; not grep " $T/" /proc/self/mountinfo
                """
            try await WebDAVServer.with { server in try await Self.run(script, server) }
        }

        /// The primary group was taken for one that a user is alone in.
        @Test(.timeLimit(.minutes(5))) func whatASharedGroupMayWriteIsNotBelieved() async throws {
            let script = """
                file="$T/nobody/home/.config/promisefs/config.toml"; mkdir -p "${file%/*}"; echo 'poll-interval = "5s"' > "$file"
                chown -R nobody:$(id -g nobody) "$T/nobody/home"; chmod 664 "$file"
                not as nobody "$P" mount "$T/nobody/cloud" 2> "$T/said"; grep 'can be written by a group' "$T/said"
                chmod 644 "$file"; as nobody "$P" mount "$T/nobody/cloud"; as nobody "$P" unmount cloud
                """
            try await WebDAVServer.with { server in try await Self.run(script, server) }
        }

        /// The folder of sockets goes when the last session of a user ends, and the mount does not.
        @Test(.timeLimit(.minutes(5))) func aMountIsFoundWhateverTheRuntimeFolder() async throws {
            let script = """
                as nobody "$P" mount "$T/nobody/cloud"; as root "$P" mount "$T/root/cloud"
                for u in nobody root; do
                    for RUN in /nowhere "" relative "$T/daemon/run"; do as $u "$P" status cloud | grep "on $T/$u/cloud"; done
                    unset RUN
                    # Emptied by somebody who tidies.
                    rm -rf "$T/$u/run/promisefs"; within 20 "as $u '$P' status cloud"; [ -S "$T/$u/run/promisefs/cloud.sock" ]
                done
                # Taken away with the session: no user can make it again.
                chown root "$T/nobody"; rm -rf "$T/nobody/run"
                within 20 'as nobody "$P" status cloud'; grep 'is made anew' "$T/nobody/home/states/cloud/log/daemon.log"
                # And a daemon that follows one that died there had no place for its socket, and served nobody.
                as nobody sh -c 'echo kept > "$T/nobody/cloud/file"'
                kill -9 "$(as nobody "$P" status cloud --json | sed 's/.*"processID":\\([0-9]*\\).*/\\1/')"
                within 20 'as nobody "$P" status cloud'; as nobody grep kept "$T/nobody/cloud/file"
                as nobody "$P" sync --wait cloud
                as nobody "$P" unmount cloud; as root "$P" unmount cloud
                """
            try await WebDAVServer.with { server in try await Self.run(script, server) }
        }
    }
}
