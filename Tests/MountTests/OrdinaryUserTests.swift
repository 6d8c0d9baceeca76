import Foundation
import Testing

extension MountSuites {
    /// A user who is not root mounts, works, and has kernel passthrough where root has installed the backing helper.
    @Suite(.enabled(if: getuid() == 0, "root is needed to become somebody else")) struct OrdinaryUserTests {
        /// In a mount namespace of its own, `/dev/fuse` is a device that everybody may use and `nobody` owns the folders.
        private static func script(helper: Bool) -> String {
            """
            chown -R nobody "$M" "$C" "$S" "$T" "$HOME" "$XDG_RUNTIME_DIR" "$XDG_DATA_HOME" "$XDG_CONFIG_HOME" "$XDG_STATE_HOME"
            chmod 755 "$(dirname "$M")"
            mkdir "$T/bin"; cp "$P" "$T/bin/promisefs"; cp "$(dirname "$P")/promisefs-backing" "$T/bin/"
            \(helper ? "setcap cap_sys_admin+ep \"$T/bin/promisefs-backing\"" : "")
            mknod "$T/fuse" c 10 229; chmod 666 "$T/fuse"; mount --bind "$T/fuse" /dev/fuse
            cat > "$T/work" <<'WORK'
            set -e
            P="$T/bin/promisefs"
            "$P" mount --state-dir "$S" --domain ordinary "folder:$C" "$M"
            "$P" status --json "$M" > "$T/status"
            cat "$M/here"; echo more >> "$M/here"; cp "$M/here" "$M/copy"; cmp "$M/here" "$M/copy"
            head -c 3M /dev/zero > "$M/large"; [ "$(stat -c %s "$M/large")" = 3145728 ]
            "$P" unmount --wait "$M"
            cmp "$C/here" "$C/copy"; [ "$(stat -c %s "$C/large")" = 3145728 ]
            WORK
            setpriv --reuid=nobody --regid=nogroup --clear-groups bash "$T/work"
            """
        }

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
    }
}
