import Testing

extension MountSuites {
    /// Parts of a folder, in order, as pickers show them.
    @Suite struct ListingTests {
        /// Types, states and tags are ordered by their names, however many lines have the same one.
        @Test(.timeLimit(.minutes(2))) func aFolderIsListedInEachOrder() async throws {
            try await MountedDomain.with(.init(uploadDelay: "0s")) { domain in
                try await domain.shell("python3 \"$W/listing-orders.py\" \"$M\" many --count 2000", seconds: 100)
            }
        }

        /// Tags, and the dates of folders in which something is made, are no changes of the folder that
        /// they are in: its list stayed in the order that it had.
        @Test(.timeLimit(.minutes(2)))
        func aFolderIsListedAnewWhenWhatItIsOrderedByIsOther() async throws {
            try await MountedDomain.with(.init(uploadDelay: "10m")) { domain in
                try await domain.shell(
                    """
                    socket="$XDG_RUNTIME_DIR/promisefs/\(domain.domainName).sock"
                    first() {
                        curl -sS --unix-socket "$socket" "http://promisefs/v1/items/children?path=/$1&sort=$2" |
                            grep -o '"path":"[^"]*"' | sed -n 1p | cut -d'"' -f4
                    }
                    mkdir -p "$M/dates/a" "$M/dates/b" "$M/tags"; touch "$M/tags/1" "$M/tags/2"
                    touch -d 2001-01-01 "$M/dates/a"; touch -d 2002-01-01 "$M/dates/b"; "$P" sync --wait "$M" > /dev/null
                    [ "$(first dates -date)" = /dates/b ]; [ "$(first tags tags)" = /tags/1 ]
                    touch "$M/dates/a/new"; setfattr -n user.xdg.tags -v red "$M/tags/1"
                    within 20 '[ "$(first dates -date)" = /dates/a ]'; within 20 '[ "$(first tags tags)" = /tags/2 ]'
                    """)
            }
        }
    }
}
