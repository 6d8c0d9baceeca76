import Testing

extension MountSuites {
    /// Somebody may write one folder of the provider's, and wants what is in another.
    @Suite(.enabled(if: Machine.isRoot, "a stranger's files are made by root only")) struct StrangersMarkMountTests {
        /// The mark of `secret` on a file of a stranger's had the edit written into that.
        @Test(.timeLimit(.minutes(2))) func anEditGoesToItsFileAndNotToOneThatSaysToBeIt() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    """
                    mkdir "$C/sub"; echo one > "$C/secret"; chmod 600 "$C/secret"; echo x > "$C/sub/x"
                    \(domain.mountCommand)
                    echo two > "$M/secret"; echo y > "$M/sub/x"; "$P" sync --wait "$M"; "$P" unmount "$M"
                    \(domain.mountCommand.replacing("'200ms'", with: "'1h'"))
                    echo edit >> "$M/secret"; "$P" unmount "$M" || [ $? = 7 ]
                    mark() { getfattr --only-values -n user.promisefs.identifier "$1"; }
                    chown -R 65534 "$C/sub"; chmod 666 "$C/sub/x"
                    claim="$(mark "$C/secret" | cut -d' ' -f1) $(mark "$C/sub/x" | cut -d' ' -f2)"
                    setfattr -n user.promisefs.identifier -v "$claim" "$C/sub/x"
                    \(domain.mountCommand)
                    ls "$M/sub" > "$T/names"; "$P" sync --wait "$M"; ls -R "$M" > "$T/all"
                    [ "$(cat "$C/secret")" = "two
                    edit" ]; [ "$(stat -c %a "$C/secret")" = 600 ]; [ "$(cat "$M/secret")" = "$(cat "$C/secret")" ]
                    not grep -rq edit "$C/sub"; [ "$(ls "$C/sub")" = x ]; [ -e "$M/secret" ]
                    """, seconds: 90)
            }
        }

        /// > A conflict version has the owner of its document, and no more rights than that has:
        @Test(.timeLimit(.minutes(2))) func aConflictVersionHasNoMoreRightsThanItsDocument() async throws {
            var options = MountedDomain.Options()
            options.prepare = "echo one > \"$C/document\"; chmod 664 \"$C/document\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell("cat \"$M/document\"")
                try domain.setFaults(["offline=true"])
                try await domain.shell(
                    """
                    echo mine > "$M/document"; echo theirs > "$C/document"; chown 65534 "$C/document"; chmod 600 "$C/document"
                    """)
                try domain.setFaults([])
                try await domain.shell(
                    """
                    within 30 '"$P" sync --wait --timeout 5s "$M" && ls "$C"/document\\ * > /dev/null 2>&1'
                    for file in "$C"/document\\ * "$M"/document\\ *; do
                        [ "$(cat "$file")" = mine ]; [ "$(stat -c '%a %u' "$file")" = '600 65534' ]
                    done
                    """, seconds: 60)
            }
        }
    }
}
