import Testing

extension MountSuites {
    /// Pictures of documents on their way through the provider.
    @Suite struct ThumbnailTests {
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
    }
}
