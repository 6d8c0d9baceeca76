import Foundation
import Testing

extension MountSuites {
    /// A user who is not root mounts, works, and has kernel passthrough where root has installed the backing helper.
    @Suite(.enabled(if: getuid() == 0, "root is needed to become somebody else")) struct OrdinaryUserTests {
        /// In a mount namespace of its own, `/dev/fuse` is a device that everybody may use and `nobody` owns the folders.
        private static func script(helper: Bool) -> String {
            """
            chown -R nobody "$M" "$C" "$S" "$T" "$HOME" "$XDG_RUNTIME_DIR" "$XDG_DATA_HOME" "$XDG_CONFIG_HOME" "$XDG_STATE_HOME"
            chmod 755 "$(dirname "$M")"; echo x > "$C/theirs"; chown 4711 "$C/theirs"; chmod 600 "$C/theirs"; mkdir "$C/roots"
            mkdir "$T/bin"; cp "$P" "$T/bin/promisefs"; cp "$(dirname "$P")/promisefs-backing" "$T/bin/"
            \(helper ? "setcap cap_sys_admin+ep \"$T/bin/promisefs-backing\"" : "")
            mknod "$T/fuse" c 10 229; chmod 666 "$T/fuse"; mount --bind "$T/fuse" /dev/fuse
            cat > "$T/work" <<'WORK'
            set -e
            P="$T/bin/promisefs"
            "$P" mount --state-dir "$S" --domain ordinary "folder:$C" "$M"
            "$P" status --json "$M" > "$T/status"
            [ "$(stat -c %U "$M/theirs")" = nobody ]; ! cat "$M/theirs"
            cat "$M/here"; echo more >> "$M/here"; cp "$M/here" "$M/copy"; cmp "$M/here" "$M/copy"
            head -c 3M /dev/zero > "$M/large"; [ "$(stat -c %s "$M/large")" = 3145728 ]
            \(helper ? "" : behindTheRefused)
            "$P" unmount --wait "$M"
            cmp "$C/here" "$C/copy"; [ "$(stat -c %s "$C/large")" = 3145728 ]
            WORK
            setpriv --reuid=nobody --regid=nogroup --clear-groups bash "$T/work"
            """
        }

        /// What is in a folder that the provider refuses was waited for without end.
        private static let behindTheRefused = """
            mkdir "$M/roots/new"; echo deep > "$M/roots/new/deep"; s=0
            timeout 30 "$P" sync --wait "$M" 2> "$T/said" || s=$?; [ "$s" = 5 ]; rm -r "$M/roots/new"
            """

        @Test(.timeLimit(.minutes(2)), arguments: [false, true]) func mountsAndWorks(hasHelper: Bool) async throws {
            var options = MountedDomain.Options()
            options.prepare = "echo here > \"$C/here\"; chmod 666 \"$C/here\""
            try await MountedDomain.with(options, mounts: false) { domain in
                try await domain.shell("cat > \"$T/script\" <<'SCRIPT'\nset -e\n\(Self.script(helper: hasHelper))\nSCRIPT")
                try await domain.shell("unshare --mount --propagation private bash \"$T/script\"")
                let status = try await domain.shell("cat \"$T/status\"").output
                #expect(status.contains("\"hasPassthrough\":\(hasHelper)"), "\(status)")
            }
        }

        @Test(.timeLimit(.minutes(2))) func startsAnApplicationWithItsView() async throws {
            let script = """
                set -e; cd /
                chown -R nobody "$M" "$C" "$S" "$T" "$HOME" "$XDG_RUNTIME_DIR" "$XDG_DATA_HOME" "$XDG_CONFIG_HOME" \\
                    "$XDG_STATE_HOME"
                chmod 755 "$(dirname "$M")"; mkdir "$T/bin"
                for n in promisefs promisefs-holder promisefs-view promisefs-locks; do cp "$(dirname "$P")/$n" "$T/bin/"; done
                mknod "$T/fuse" c 10 229; chmod 666 "$T/fuse"; mount --bind "$T/fuse" /dev/fuse
                cat > "$T/work" <<'WORK'
                set -e
                P="$T/bin/promisefs"
                "$P" mount --state-dir "$S" --domain ordinary "folder:$C" "$M"; "$P" grants add "$M/doc" --app com.example.a
                "$P" run --app com.example.a --domain ordinary -- sh -c 'ls granted; echo new > granted/doc
                    flock granted/doc cat granted/doc; ! cat ../*/secret' > "$T/seen" 2> /dev/null
                [ "$(tr '\\n' ' ' < "$T/seen")" = "doc new " ]; [ "$(cat "$M/doc")" = new ]
                "$P" unmount --wait "$M"; [ "$(cat "$C/doc")" = new ]
                WORK
                setpriv --reuid=nobody --regid=nogroup --clear-groups bash "$T/work"
                """
            let options = MountedDomain.Options(prepare: "echo old > $C/doc; echo secret > $C/secret")
            try await MountedDomain.with(options, mounts: false) { domain in
                try await domain.shell("cat > \"$T/script\" <<'SCRIPT'\n\(script)\nSCRIPT")
                try await domain.shell("unshare --mount --propagation private bash \"$T/script\"")
            }
        }

        /// As `nobody`, whom permission bits bind, the provider's own rules in `$T/open`, which holds what `prepare` makes.
        private static func check(_ prepare: String, mayFail: Bool = false) -> String {
            """
            chmod 755 "$T/.." "$T"; mkdir -p "$T/open/a/b"; \(prepare)
            cp "$P" "$T/promisefs"; cd /
            setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME="$T/open" XDG_RUNTIME_DIR= \
                "$T/promisefs" provider check "folder:$T/open" --destructive-in a/b > "$T/report" ||
                { cat "$T/report"; \(mayFail ? "true" : "exit 1"); }
            grep 'without write permission' "$T/report" | grep -q passed
            grep 'holds every item once' "$T/report" | grep -q passed
            """
        }

        /// Trees of tar, `cp -a` and Go's module cache: each later change in such a folder was refused for good.
        @Test(.timeLimit(.minutes(3))) func foldersWithoutWritePermissionAreWorkedIn() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(Self.check("chown -R nobody \"$T/open\""), seconds: 150)
            }
        }

        /// It is opened up for the moment of a change: a daemon that died then left it writable for good.
        @Test(.timeLimit(.minutes(2)), arguments: ["file", "move"])
        func aKilledDaemonLeavesNoFolderWritable(change: String) async throws {
            let script = """
                set -e; cd /
                mkdir -p "$C/closed" "$C/into"; echo x > "$C/closed/x"; chmod 555 "$C/closed"
                chown -R nobody "$M" "$C" "$S" "$T" "$HOME" "$XDG_RUNTIME_DIR" "$XDG_DATA_HOME" "$XDG_CONFIG_HOME" \
                    "$XDG_STATE_HOME"
                chmod 755 "$(dirname "$M")"; mkdir "$T/bin"
                for n in promisefs promisefs-holder; do cp "$(dirname "$P")/$n" "$T/bin/"; done
                mknod "$T/fuse" c 10 229; chmod 666 "$T/fuse"; mount --bind "$T/fuse" /dev/fuse
                cat > "$T/work" <<'WORK'
                set -e
                P="$T/bin/promisefs"; export PROMISEFS_FAULT_FILE="$T/fault"
                mounted() { "$P" mount --no-supervision --upload-delay 2s --state-dir "$S" --domain ordinary "folder:$C" "$M"; }
                mounted; cat "$M/closed/x"; echo 'folder.open.mode 2 KILL' > "$T/fault"
                # At the provider the folder never had another mode.
                chmod 755 "$M/closed"
                if [ $1 = move ]; then mv "$M/closed" "$M/into/there"; chmod 555 "$M/into/there"
                else rm "$M/closed/x"; chmod 555 "$M/closed"; fi
                for n in $(seq 100); do stat "$M" > /dev/null 2>&1 || break; sleep 0.1; done
                find "$C" -name closed -o -name there | xargs stat -c %a > "$T/killed"; [ "$(cat "$T/killed")" = 755 ]
                rm "$T/fault"; mounted; find "$C" -name closed -o -name there | xargs stat -c %a > "$T/mended"
                "$P" sync --wait "$M"; "$P" unmount --wait "$M"
                [ "$(cat "$T/mended")" = 555 ]; [ "$(find "$C" -name closed -o -name there | xargs stat -c %a)" = 555 ]
                if [ $1 = move ]; then [ -e "$C/into/there/x" ]; else [ ! -e "$C/closed/x" ]; fi
                [ -z "$(ls -A "$S/opened-folders")" ]
                WORK
                setpriv --reuid=nobody --regid=nogroup --clear-groups bash "$T/work" \(change)
                """
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell("cat > \"$T/script\" <<'SCRIPT'\n\(script)\nSCRIPT")
                try await domain.shell("unshare --mount --propagation private bash \"$T/script\"")
            }
        }

        /// One file that may not be read hid all others of its folder.
        @Test(.timeLimit(.minutes(3))) func aFileThatMayNotBeReadHidesNoOther() async throws {
            let unreadable = """
                mkdir "$T/open/.promisefs"; echo none > "$T/open/none"; chmod 000 "$T/open/none"; chown -R nobody "$T/open"
                for f in "$T/open/roots" "$T/open/a/roots"; do echo secret > "$f"; chmod 600 "$f"; done
                """
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(Self.check(unreadable, mayFail: true), seconds: 150)
            }
        }
    }
}
