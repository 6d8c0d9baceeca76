import Testing

extension MountSuites {
    /// What was moved at a store that knows places only, before its domain was migrated on.
    @Suite struct MovedMigrationTests {
        private static let shorthand = """
            O="$T/other"; mkdir -p "$O" "$T/first" "$T/last"
            mountOther() { # DOMAIN PROVIDER
              "$P" mount --domain "$1" --state-dir "$T/state-$1" --poll-interval 1s --upload-delay 0s "$2" "$O" > /dev/null
            }
            unmountOther() { "$P" unmount --wait "$O"; }
            migrate() { "$P" migrate papers --state-dir "$T/state-papers" "$1"; }
            trap 'umount -l "$O" 2> /dev/null || true' EXIT
            all() { # BEFORE: what the links in both domains lead to, and what is there
              for n in doc renamed top still; do
                for l in $1; do
                  [ "$(cat "$O/desk/$l$n")" = $n ] || { echo "$l$n: $(readlink "$O/desk/$l$n")"; return 1; }
                  [ "$(cat "$M/desk/$l$n")" = $n ] || { echo "$M/desk/$l$n: $(readlink "$M/desk/$l$n")"; return 1; }
                done
              done
            }
            refer() { # MARK, and where the four documents are
              for pair in "$2 doc" "$3 renamed" "$4 top" "$5 still"; do
                set -- "$1" $pair
                for desk in "$O" "$M"; do "$P" reference add "$O/$2" "$desk/desk/$1$3" > /dev/null; done
              done
            }

            """

        /// A machine that was not there before was led nowhere by each of them: what a move at the server has left was noted
        /// at the server only.
        @Test(
            .timeLimit(.minutes(3)),
            .enabled(if: WebDAVServer.canRun, "there is no apache2, so there is no server to ask"))
        func referencesFollowWhatWasMovedWhereOnlyPlacesAreKnownOnAFreshMachine() async throws {
            try await WebDAVServer.with { server in
                var options = MountedDomain.Options(arguments: ["--poll-interval", "1s", "--upload-delay", "0s"])
                for prefix in ["PROMISEFS_", "PROMISEFS_OLD_"] {
                    options.environment[prefix + "USER"] = WebDAVServer.user
                    options.environment[prefix + "PASSWORD"] = WebDAVServer.password
                }
                try await MountedDomain.with(options) { domain in
                    try await domain.shell(
                        Self.shorthand
                            + """
                            mountOther papers "folder:$T/first"; mkdir -p "$O/d/sub" "$O/f" "$O/desk" "$M/desk"
                            echo doc > "$O/d/sub/doc"; echo renamed > "$O/f/a"; echo top > "$O/top"; echo still > "$O/still"
                            "$P" sync --wait "$O"; refer a d/sub/doc f/a top still; "$P" sync --wait "$O"; all a
                            unmountOther; migrate '\(server.provider)'; mountOther papers '\(server.provider)'; all a
                            refer b d/sub/doc f/a top still; mkdir "$O/new"; mv "$O/d" "$O/e"; mv "$O/f/a" "$O/f/b"
                            mv "$O/top" "$O/new/top"; mv "$O/e" "$O/g"; "$P" sync --wait "$O"; all 'a b'; unmountOther
                            migrate "folder:$T/last"; mountOther papers "folder:$T/last"; all 'a b'
                            mv "$O/still" "$O/moved"; "$P" sync --wait "$O"; unmountOther; "$P" sync --wait "$M"
                            """, seconds: 120)
                    try await domain.shell(
                        Self.shorthand
                            + """
                            rm -rf "$T/state-papers"; mountOther letters "folder:$T/last"
                            within 10 'all "a b" > "$T/said"' || { cat "$T/said" >&2; exit 1; }
                            mv "$O/g/sub/doc" "$O/doc"; all 'a b'; unmountOther
                            """, seconds: 60)
                }
            }
        }
    }
}
