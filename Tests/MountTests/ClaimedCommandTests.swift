import Testing

extension MountSuites {
    /// What commands have the daemon do waits for claims as programs do, and not for those of the command around.
    @Suite struct ClaimedCommandTests {
        private var options: MountedDomain.Options {
            var options = MountedDomain.Options()
            options.prepare = "mkdir \"$C/d\"; echo 1 > \"$C/d/one\"; echo 2 > \"$C/d/two\"; echo 0 > \"$C/file\""
            return options
        }

        /// It came back to the place, and into the folder, that somebody else had a claim on.
        @Test(.timeLimit(.minutes(2))) func whatWasRemovedComesBackWhenTheClaimOnItsPlaceHasEnded() async throws {
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    inside() {
                        rm -f "$T/in" "$T/out"
                        "$P" coordinate write "$1" -- sh -c 'touch "$1/in"; sleep 1; ls "$2" > "$1/seen"; touch "$1/out"' \\
                            sh "$T" "$M/d" & claim=$!; within 10 '[ -e "$T/in" ]'
                    }
                    cat "$M/d/one" "$M/d/two" "$M/file" > /dev/null; rm "$M/d/one" "$M/file"
                    inside "$M/d"; "$P" trash restore "$M/d/one"; [ -e "$T/out" ]; wait $claim
                    [ "$(cat "$T/seen")" = two ]; [ "$(cat "$M/d/one")" = 1 ]
                    inside "$M/file"; "$P" trash restore "$M/file"; [ -e "$T/out" ]; wait $claim
                    inside "$M/d"; rm "$M/file"; "$P" trash restore "$M/file"; [ ! -e "$T/out" ]; wait $claim
                    rm "$M/file"; inside "$M/d"; "$P" trash restore --to "$M/d" "$M/file"; [ -e "$T/out" ]; wait $claim
                    rm -r "$M/d"; inside "$M/d"; "$P" trash restore "$M/d/two"; [ -e "$T/out" ]; wait $claim
                    [ "$(cat "$M/d/two")" = 2 ]; rm "$M/d/two"
                    "$P" coordinate write "$M/d" -- "$P" trash restore "$M/d/two"; [ "$(cat "$M/d/two")" = 2 ]
                    """)
            }
        }

        /// It waited for ten seconds for the claim that it was within, and failed.
        @Test(.timeLimit(.minutes(2))) func aCoordinatedCommandGivesUpAndEvictsWhatItHasClaimed() async throws {
            var options = options
            options.arguments = ["--upload-delay", "1h"]
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cat "$M/d/one" "$M/file" > /dev/null; echo mine > "$M/file"
                    "$P" coordinate write "$M/file" -- "$P" revert "$M/file"; [ "$(cat "$M/file")" = 0 ]
                    "$P" coordinate write "$M/d" -- "$P" evict "$M/d/one"
                    [ "$(getfattr --only-values -n user.promisefs.state "$M/d/one")" = placeholder ]
                    cat "$M/d/one" > /dev/null
                    "$P" coordinate write "$M/d/one" -- sh -c 'touch "$1"; sleep 20' sh "$T/in" & claim=$!
                    within 10 '[ -e "$T/in" ]'; not "$P" evict "$M/d/one"; kill $claim; wait $claim || true
                    """)
            }
        }
    }
}
