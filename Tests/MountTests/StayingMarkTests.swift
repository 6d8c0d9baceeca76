import Testing

extension MountSuites {
    /// What an attribute keeps on this machine.
    @Suite struct StayingMarkTests {
        /// > The attribute `user.promisefs.excluded`, set to `true`, keeps a file or folder
        @Test(.timeLimit(.minutes(2))) func whatIsMarkedIsNotSentUntilTheMarkGoes() async throws {
            var options = MountedDomain.Options()
            options.uploadDelay = "2s"
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    mark() { setfattr "$@" -n user.promisefs.excluded -v true; }
                    mkdir "$M/notes" "$M/notes/deep"; echo 1 > "$M/notes/one"; echo 2 > "$M/notes/deep/two"; echo p > "$M/private"
                    ln -s private "$M/link"; setfattr -h -n system.promisefs.excluded -v true "$M/link"
                    mark "$M/notes"; mark "$M/private"; echo 3 > "$M/notes/deep/three"
                    [ "$(getfattr --only-values -n user.promisefs.state "$M/private")" = excluded ]
                    ! setfattr -n user.promisefs.excluded -v maybe "$M/private" 2> "$T/e"; grep -q Invalid "$T/e"
                    """)
                try await domain.synchronize()
                try await domain.shell(
                    """
                    [ -z "$(ls "$C")" ]; "$P" status "$M" | grep -q 'stay here.*7 items'
                    "$P" pending "$M" --excluded | grep -q notes/deep/three
                    mv "$M/private" "$M/secret"; mv "$M/notes/deep/two" "$M/two"; cp -a "$M/secret" "$M/copy"
                    ln "$M/secret" "$M/other"
                    """)
                try await domain.synchronize()
                try await domain.shell(
                    """
                    [ "$(ls "$C")" = two ]; getfattr -n user.promisefs.excluded "$M/copy" > /dev/null
                    setfattr -x user.promisefs.excluded "$M/notes"; setfattr -x user.promisefs.excluded "$M/secret"
                    setfattr -h -x system.promisefs.excluded "$M/link"
                    """)
                try await domain.synchronize()
                try await domain.shell(
                    """
                    [ "$(cat "$C/notes/deep/three" "$C/notes/one" "$C/secret" "$C/other" | tr -d '\\n')" = 31pp ]
                    [ ! -e "$C/copy" ]; [ "$(readlink "$C/link")" = private ]; [ "$(cat "$M/copy")" = p ]
                    """)
            }
        }

        /// > The attribute stays with a document that is saved
        @Test(.timeLimit(.minutes(2))) func everyWayOfSavingKeepsAMarkedDocumentHere() async throws {
            var options = MountedDomain.Options()
            options.uploadDelay = "2s"
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cd "$M"; for name in in-place renamed backup removed removed-renamed; do
                        echo old > $name; setfattr -n user.promisefs.excluded -v true $name
                    done
                    echo new > in-place
                    echo new > temporary; mv temporary renamed
                    mv backup backup~; echo new > backup
                    rm removed; echo new > removed
                    echo new > temporary; rm removed-renamed; mv temporary removed-renamed
                    """)
                try await domain.synchronize()
                try await domain.shell(
                    """
                    [ -z "$(ls "$C")" ]
                    for name in in-place renamed backup removed removed-renamed; do
                        [ "$(cat "$M/$name")" = new ]
                        [ "$(getfattr --only-values -n user.promisefs.excluded "$M/$name")" = true ]
                    done
                    """)
            }
        }

        /// > What the provider has is never removed there by the attribute
        @Test(.timeLimit(.minutes(2))) func markingNeverTakesWhatTheProviderHas() async throws {
            var options = MountedDomain.Options()
            options.prepare = "mkdir -p \"$C/build/old\"; echo far > \"$C/far\"; echo x > \"$C/build/old/x\"; echo y > \"$C/y\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cd "$M"; mark() { setfattr "$@" -n user.promisefs.excluded -v true; }
                    ! mark far 2> "$T/e"; grep -q 'File exists' "$T/e"; cat far > "$T/seen"; ! mark far 2> "$T/e"
                    mark build; ls build/old > "$T/seen"
                    echo new > build/new; echo new > build/old/new; mkdir build/made; echo in > build/made/in
                    echo edited > build/old/x; mv y build/y; mv build/old build/older; mv build/y build/z
                    """)
                try await domain.synchronize()
                try await domain.shell(
                    """
                    cd "$C"; [ "$(cat far build/older/x build/z | tr '\\n' ' ')" = "far edited y " ]
                    [ "$(find . -type f -not -path './.promisefs*' | wc -l)" = 3 ]
                    [ "$("$P" pending "$M" --excluded | grep -c '^excluded')" = 4 ]
                    setfattr -x user.promisefs.excluded "$M/build"
                    """)
                try await domain.synchronize()
                try await domain.shell("diff -r \"$M/build\" \"$C/build\"; [ -e \"$C/build/made/in\" ]")
            }
        }

        /// The mark is in the index, and is known to the next daemon.
        @Test(.timeLimit(.minutes(2))) func aMarkHoldsAfterTheDaemonWasKilled() async throws {
            var options = MountedDomain.Options()
            options.uploadDelay = "2s"
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    "mkdir \"$M/kept\"; setfattr -n user.promisefs.excluded -v true \"$M/kept\"; echo 1 > \"$M/kept/a\"")
                try await domain.kill9()
                try await domain.remount()
                try await domain.shell("echo 2 > \"$M/kept/b\"; echo 3 > \"$M/sent\"; mv \"$M/kept/a\" \"$M/kept/c\"")
                try await domain.synchronize()
                try await domain.shell("[ \"$(ls \"$C\")\" = sent ]; [ \"$(cat \"$M\"/kept/*)\" = \"2\n1\" ]")
            }
        }
    }
}
