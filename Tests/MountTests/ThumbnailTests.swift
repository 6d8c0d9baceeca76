import Testing

extension MountSuites {
    /// Pictures of documents, of which content they are, and those that mean harm.
    @Suite struct ThumbnailTests {
        /// The time alone was looked at.
        @Test(.timeLimit(.minutes(2)), .enabled(if: Machine.hasThumbnailer, "there is no thumbnailer for PNG"))
        func aPictureOfOtherContentIsNeverShown() async throws {
            var options = MountedDomain.Options()
            options.prepare = """
                mkdir "$C/p"; python3 "$R/clients/python/tests/pictures.py" make "$C/p" 3
                PYTHONPATH="$R/clients/python/tests" python3 -c '
                import pictures, sys
                open(sys.argv[1], "wb").write(pictures.picture(900, 800, 7))' "$C/p/3.png"
                """
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cat "$M"/p/*.png > /dev/null; made() { "$P" thumbnail "$M/p/$1" -o "$T/$2" --size 1024; }
                    made 0.png first; made 3.png other; not cmp -s "$T/first" "$T/other"
                    # A program here that keeps times.
                    cp -p "$M/p/0.png" "$T/copy"; cat "$M/p/3.png" > "$M/p/0.png"; touch -r "$T/copy" "$M/p/0.png"
                    made 0.png again; cmp "$T/again" "$T/other"
                    # Its picture stays when the provider has been told of it.
                    "$P" sync --wait "$M"; made 0.png sent; cmp "$T/sent" "$T/other"
                    # And another machine that keeps times.
                    made 1.png one; "$P" evict "$M/p/1.png" > /dev/null; cp -p "$C/p/1.png" "$T/copy"
                    cat "$C/p/3.png" > "$C/p/1.png"; touch -r "$T/copy" "$C/p/1.png"; "$P" sync "$M"
                    within 20 'cmp -s "$M/p/1.png" "$C/p/3.png"'; made 1.png replaced; cmp "$T/replaced" "$T/other"
                    """)
            }
        }

        @Test(.timeLimit(.minutes(2)), .enabled(if: Machine.hasThumbnailer, "there is no thumbnailer for PNG"))
        func whatIsNoWholePNGIsRefused() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    mkdir "$T/p"; python3 "$R/clients/python/tests/pictures.py" make "$T/p" 1; echo text > "$M/note"
                    "$P" thumbnail "$M/note" --save "$T/p/0.png"
                    "$P" thumbnail "$M/note" -o "$T/kept"; cmp "$T/kept" "$T/p/0.png"
                    python3 - "$T/p/0.png" "$T" <<'END'
                    import sys
                    data = open(sys.argv[1], "rb").read()
                    broken = {"cut": data[:-1], "head": data[:60], "more": data + b"x", "flipped": data[:50] + b"!" + data[51:],
                              "noend": data[:-12], "ends": data[:33] + data[-12:], "size": data[:16] + bytes(4) + data[20:]}
                    for name, content in broken.items():
                        open(f"{sys.argv[2]}/broken-{name}", "wb").write(content)
                    END
                    for file in "$T"/broken-*; do
                        not "$P" thumbnail "$M/note" --save "$file" 2> "$T/said"; grep -q "whole PNG" "$T/said"
                    done
                    "$P" thumbnail "$M/note" -o "$T/kept"; cmp "$T/kept" "$T/p/0.png"
                    """)
            }
        }

        /// A PNG of 2.4 MB took 7.2 GiB.
        @Test(.timeLimit(.minutes(5)), .enabled(if: Machine.hasThumbnailer, "there is no thumbnailer for PNG"))
        func picturesThatMeanHarmDoNone() async throws {
            var options = MountedDomain.Options()
            options.prepare = "mkdir \"$C/hostile\"; python3 \"$R/scripts/workloads/hostile-pictures.py\" make \"$C/hostile\""
            try await MountedDomain.with(options) { domain in
                let daemon = try #require(domain.daemonProcesses().first)
                let asked = try await domain.shell(
                    "python3 \"$R/scripts/workloads/hostile-pictures.py\" ask \"$P\" \"$M\" \(daemon)", seconds: 250)
                print(asked.output)
                #expect(try await domain.status().restarts == 0)
            }
        }

        @Test(.timeLimit(.minutes(2)), .enabled(if: Machine.hasThumbnailer, "there is no thumbnailer for PNG"))
        func picturesReachOtherMachinesThroughTheProvider() async throws {
            var options = MountedDomain.Options()
            options.prepare = "mkdir \"$C/pictures\"; python3 \"$R/clients/python/tests/pictures.py\" make \"$C/pictures\" 3"
            try await MountedDomain.with(options) { one in
                try await one.shell(
                    """
                    find "$M" > /dev/null; cat "$M/pictures/0.png" > /dev/null
                    "$P" thumbnail "$M/pictures/0.png" -o "$T/made.png"
                    python3 "$R/clients/python/tests/pictures.py" save "$M" pictures/1.png "$T/made.png"
                    within 30 '[ "$(ls "$C/.promisefs/thumbnails" | wc -l)" = 2 ]'
                    """)
                var options = MountedDomain.Options()
                options.cloud = one.cloud
                try await MountedDomain.with(options) { two in
                    try await two.shell(
                        """
                        export XDG_CACHE_HOME="$T/cache"; find "$M" > "$T/names"; not grep -q promisefs "$T/names"
                        "$P" thumbnail --json "$M/pictures" > "$T/counts"; [ "$(cat "$T/counts")" = '{"pictures":2,"without":1}' ]
                        python3 "$R/clients/python/tests/pictures.py" cached "$XDG_CACHE_HOME" "$M" 2
                        """)
                    #expect(try await two.status().bytesFetched == 0)
                    try await two.shell("cp \"$C/pictures/2.png\" \"$C/pictures/1.png\"; rm \"$M/pictures/0.png\"")
                    try await two.synchronize()
                    try await two.shell(
                        """
                        not "$P" thumbnail "$M/pictures/1.png" -o "$T/old.png" 2> "$T/err"; grep -q 'no picture' "$T/err"
                        [ "$(ls "$C/.promisefs/thumbnails" | wc -l)" = 1 ]
                        """)
                }
            }
        }

        /// Servers kept none: each machine had to fetch the content for them.
        @Test(
            .timeLimit(.minutes(3)), .enabled(if: Machine.hasThumbnailer, "there is no thumbnailer for PNG"),
            arguments: ["webdav", "s3"])
        func picturesReachOtherMachinesThroughServers(_ kind: String) async throws {
            if kind == "s3" {
                try await S3Server.with { try await passOn($0.options(), isFolder: false) }
            } else if WebDAVServer.canRun {
                try await WebDAVServer.with { try await passOn($0.options(), isFolder: true) }
            }
        }

        /// `isFolder`: what the server has can be seen in a folder.
        private func passOn(_ options: MountedDomain.Options, isFolder: Bool) async throws {
            let words =
                "SEEN=\(isFolder ? 1 : 0)\n"
                + #"""
                export XDG_CACHE_HOME="$T/cache"
                objects() { ls "$C/.promisefs/pictures" | wc -l; }
                kept() { [ $SEEN = 0 ] || within 30 "[ \$(objects) = $1 ]"; }
                counts() { "$P" thumbnail --json "$M/pictures" | tr -d '"'; }
                made() { "$P" thumbnail "$M/pictures/$1.png" -o "$T/$1-made.png" 2> "$T/err"; }

                """#
            try await MountedDomain.with(options) { one in
                try await one.shell(
                    words
                        + #"""
                        mkdir "$M/pictures" "$T/p"; python3 "$R/clients/python/tests/pictures.py" make "$T/p" 3
                        cp "$T"/p/*.png "$M/pictures"; made 0; "$P" thumbnail "$M/pictures/1.png" --save "$T/0-made.png"
                        "$P" sync --wait "$M"; kept 2
                        """#)
                try await MountedDomain.with(options) { two in
                    try await two.shell(
                        words
                            + #"""
                            # What nobody has listed has no documents yet.
                            find "$M" > "$T/names"; within 30 '[ "$(counts)" = "{pictures:2,without:1}" ]'
                            not grep -q promisefs "$T/names"
                            mv "$M/pictures/0.png" "$M/pictures/moved.png"; "$P" sync --wait "$M"
                            """#)
                    #expect(try await two.status().bytesFetched == 0)
                    // Who moves it puts the picture to the new place.
                    try await one.shell(
                        words
                            + #"""
                            within 10 '[ -e "$M/pictures/moved.png" ]'; made 2; kept 3; "$P" evict "$M/pictures" > /dev/null
                            within 30 '[ "$(counts)" = "{pictures:3,without:0}" ]'; kept 3
                            """#)
                    #expect(try await two.status().bytesFetched == 0)
                    guard isFolder else { return }
                    // What has gone is removed.
                    try await one.shell(
                        words
                            + #"""
                            rm "$M/pictures/1.png"; cat "$T/p/0.png" > "$M/pictures/2.png"; "$P" sync --wait "$M"
                            "$P" unmount --wait "$M"
                            """#)
                    try await one.remount()
                    try await one.shell(words + "kept 2")
                    // Of other content it is not shown.
                    try await two.shell(
                        words
                            + #"""
                            within 10 '[ ! -e "$M/pictures/1.png" ]'; within 10 'not made 2'; grep -q 'no picture' "$T/err"
                            """#)
                }
            }
        }
    }
}
