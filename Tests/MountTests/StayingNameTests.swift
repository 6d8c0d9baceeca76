import Testing

extension MountSuites {
    /// Which names stay on this machine, and that everybody can see it.
    @Suite struct StayingNameTests {
        /// A name alone decided that data was not sent, and nobody was told.
        @Test(.timeLimit(.minutes(2))) func onlyCompanionsOfAnOpenDatabaseStayHere() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    mkdir "$M/trip" "$M/trip-journal" "$M/backup~"; echo 1 > "$M/trip-journal/one"; echo 2 > "$M/backup~/two"
                    echo a > "$M/paper"; exec 9< "$M/paper"; echo b > "$M/paper-journal"; echo c > "$M/plan-wal"
                    echo d > "$M/plan"
                    python3 - "$M/data.db" "$C" <<'END'
                    import os, sqlite3, sys
                    database = sqlite3.connect(sys.argv[1])
                    database.execute("pragma journal_mode = wal")
                    database.execute("create table t (x)"); database.commit()
                    state = os.getxattr(sys.argv[1] + "-wal", "user.promisefs.state")
                    assert state == b"excluded", state
                    END
                    touch "$M/letter~"; mkdir "$M/.Trash-0"; echo gone > "$M/.Trash-0/gone"
                    "$P" sync --wait "$M"; exec 9<&-
                    for name in trip-journal/one backup~/two paper-journal plan-wal plan data.db; do
                        cmp "$M/$name" "$C/$name"
                    done
                    [ ! -e "$C/letter~" ]; [ ! -e "$C/.Trash-0" ]
                    "$P" pending --excluded "$M" > "$T/excluded"; [ "$(grep -c '^excluded' "$T/excluded")" = 3 ]
                    grep -q 'letter~$' "$T/excluded"
                    "$P" status "$M" | grep -q 'stay here.*3 items'; "$P" pending "$M" | grep -q 'nothing is pending'
                    """)
            }
        }

        /// > Renaming an item to an excluded name keeps it at the provider, under that name, unless
        @Test(.timeLimit(.minutes(2))) func aRenameToANameThatStaysHereNeverTakesTheOnlyOtherCopy() async throws {
            var options = MountedDomain.Options()
            options.prepare =
                "mkdir \"$C/inbox\"; for n in 4911 4914 letter; do echo $n > \"$C/inbox/$n\"; done; echo x > \"$C/far\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cat "$M"/inbox/* > /dev/null; mv "$M/inbox/4914" "$M/inbox/4913"; "$P" sync --wait "$M"
                    [ "$(cat "$C/inbox/4913")" = 4914 ]; [ ! -e "$C/inbox/4914" ]
                    identifier() { getfattr --only-values -n user.promisefs.identifier "$1"; }
                    before=$(identifier "$M/inbox/letter"); mv "$M/inbox/letter" "$M/inbox/letter~"; echo new > "$M/inbox/letter"
                    "$P" sync --wait "$M"; [ "$(identifier "$M/inbox/letter")" = "$before" ]; [ "$(cat "$C/inbox/letter")" = new ]
                    [ ! -e "$C/inbox/letter~" ]; [ "$(cat "$M/inbox/letter~")" = letter ]
                    mkdir "$M/.Trash-0"; mv "$M/far" "$M/.Trash-0/far"; [ "$(cat "$M/.Trash-0/far")" = x ]
                    "$P" sync --wait "$M"; [ ! -e "$C/far" ]; [ ! -e "$C/.Trash-0" ]
                    """)
            }
        }
    }
}
