import Testing

extension MountSuites {
    /// Times that programs give to folders, and modes that forbid what was put into them.
    @Suite struct FolderTimeTests {
        /// `told FOLDER`: what is to be the same.
        private static let tree = """
            mkdir -p "$T/tree/a/b/c" "$T/tree/closed/in"; for n in $(seq 30); do echo $n > "$T/tree/a/b/$n"; done
            echo x > "$T/tree/closed/in/x"; chmod 555 "$T/tree/closed/in" "$T/tree/closed"
            find "$T/tree" -depth -type d -exec touch -d '2001-02-03 04:05:06.789' {} +
            told() { (cd "$1" && find . -type d -printf '%P %T@ %m\\n' | sort); }

            """

        /// > A time that a program gives to a folder, as tar, cp and rsync do, is told after what is in it,
        @Test(.timeLimit(.minutes(2))) func timesAndModesOfFoldersAreToldAfterWhatIsInThem() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    Self.tree + """
                        cp -a "$T/tree" "$M/copied"; rsync -a "$T/tree/" "$M/synced/"
                        mkdir "$M/unpacked"; tar -C "$T/tree" --format=posix -c . | tar -C "$M/unpacked" -xp
                        "$P" sync --wait "$M"
                        for name in copied synced unpacked; do
                            diff <(told "$T/tree") <(told "$M/$name"); diff <(told "$T/tree") <(told "$C/$name")
                            diff -r "$T/tree" "$C/$name"
                        done
                        echo more > "$M/copied/a/more"; touch -d 2010-01-01 "$M/copied/a"; "$P" sync --wait "$M"
                        [ "$(stat -c %y "$C/copied/a" | cut -c 1-10)" = 2010-01-01 ]; [ "$(cat "$C/copied/a/more")" = more ]
                        rm "$M/copied/a/more"; touch -d 2011-01-01 "$M/copied/a"; "$P" sync --wait "$M"
                        [ "$(stat -c %y "$C/copied/a" | cut -c 1-10)" = 2011-01-01 ]; [ ! -e "$C/copied/a/more" ]
                        [ "$("$P" pending "$M" --json | grep -c '"kind"')" = 0 ]
                        chmod -R u+w "$T/tree" "$M/copied" "$M/synced" "$M/unpacked"; "$P" sync --wait "$M"
                        """, seconds: 100)
            }
        }

        @Test(.timeLimit(.minutes(2)), .enabled(if: WebDAVServer.canRun, "there is no apache2, so there is no server to ask"))
        func anotherMachineSeesTimesOfFolders() async throws {
            try await WebDAVServer.with { server in
                try await MountedDomain.with(server.options()) { domain in
                    try await domain.shell(
                        Self.tree + """
                            cp -a "$T/tree" "$M/copied"; "$P" sync --wait "$M"; mkdir "$T/second"
                            "$P" mount --state-dir "$T/state" --domain \(domain.domainName)b \(server.provider) "$T/second"
                            diff <(told "$T/tree") <(told "$T/second/copied"); "$P" unmount "$T/second"
                            chmod -R u+w "$T/tree" "$M/copied"; "$P" sync --wait "$M"
                            """, seconds: 100)
                }
            }
        }

        /// It showed the time at which this machine had first seen the folder.
        /// > A folder whose names others change, or to which they give a time, shows what the provider says
        @Test(.timeLimit(.minutes(2))) func timesThatOthersGiveToFoldersAreFollowed() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    Self.tree + """
                        day() { stat -c %y "$1" | cut -c 1-10; }
                        cp -a "$T/tree" "$C/theirs"; ls -R "$M" > /dev/null
                        touch -d 2015-06-07 "$C/theirs/a/b"
                        within 20 '[ "$(stat -c %y "$M/theirs/a/b" | cut -c 1-10)" = 2015-06-07 ]'
                        echo more > "$C/theirs/a/more"; within 20 '[ -e "$M/theirs/a/more" ]'
                        within 20 '[ "$(stat -c %Y "$M/theirs/a")" = "$(stat -c %Y "$C/theirs/a")" ]'
                        rm "$C/theirs/a/more"; touch -d 2014-01-01 "$C/theirs/a"; within 20 '[ ! -e "$M/theirs/a/more" ]'
                        within 20 '[ "$(stat -c %y "$M/theirs/a" | cut -c 1-10)" = 2014-01-01 ]'
                        touch -d 2013-01-01 "$M/theirs/a"; "$P" sync --wait "$M"; sleep 2; [ "$(day "$M/theirs/a")" = 2013-01-01 ]
                        [ "$(day "$C/theirs/a")" = 2013-01-01 ]; [ "$("$P" pending "$M" --json | grep -c '"kind"')" = 0 ]
                        chmod -R u+w "$T/tree" "$C/theirs"
                        """, seconds: 100)
            }
        }

        @Test(
            .timeLimit(.minutes(3)), .enabled(if: WebDAVServer.canRun, "there is no apache2, so there is no server to ask"))
        func timesThatAnotherMachineGivesToFoldersAreFollowed() async throws {
            try await WebDAVServer.with { server in
                try await MountedDomain.with(server.options()) { try await exchangeTimes($0, server.provider) }
            }
        }

        @Test(.timeLimit(.minutes(3)))
        func timesThatAnotherMachineGivesToFoldersOfABucketAreFollowed() async throws {
            try await S3Server.with { server in
                try await MountedDomain.with(server.options()) { try await exchangeTimes($0, server.provider) }
            }
        }

        /// A bucket tells whole seconds: what is given within the one before is told with that.
        private func exchangeTimes(_ domain: MountedDomain, _ provider: String) async throws {
            try await domain.shell(
                """
                mkdir -p "$M/a/b"; echo x > "$M/a/b/x"; "$P" sync --wait "$M"; mkdir "$T/second"
                "$P" mount --poll-interval 1s --state-dir "$T/state" --domain \(domain.domainName)b '\(provider)' "$T/second"
                ls -R "$T/second" > /dev/null; sleep 2; touch -d 2015-06-07 "$M/a/b"; "$P" sync --wait "$M"
                within 30 '[ "$(stat -c %y "$T/second/a/b" | cut -c 1-10)" = 2015-06-07 ]'; sleep 2
                echo y > "$T/second/a/b/y"; touch -d 2016-07-08 "$T/second/a/b"; "$P" sync --wait "$T/second"
                within 30 '[ "$(stat -c %y "$M/a/b" | cut -c 1-10)" = 2016-07-08 ]'; [ "$(cat "$M/a/b/y")" = y ]
                "$P" unmount "$T/second"
                """, seconds: 150)
        }
    }
}
