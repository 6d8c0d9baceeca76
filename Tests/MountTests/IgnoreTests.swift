import Testing

extension MountSuites {
    /// What the user says stays on this machine.
    @Suite struct IgnoreTests {
        /// > Patterns of gitignore(5) say of more names that they stay here
        @Test(.timeLimit(.minutes(2))) func whatTheUserIgnoresStaysHere() async throws {
            var options = MountedDomain.Options()
            options.arguments = ["--ignore", "*.o", "--ignore", "/scratch/"]
            options.prepare = "mkdir \"$C/project\"; echo kept > \"$C/project/only.txt\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    printf 'build/\\n*.txt\\n!read.txt\\n!keep.o\\n' > "$M/project/.promisefsignore"
                    mkdir "$M/scratch" "$M/project/build" "$M/project/scratch"
                    for name in a.o scratch/x project/build/y project/t.txt project/read.txt project/keep.o project/scratch/z; do
                        echo x > "$M/$name"
                    done
                    mv "$M/project/only.txt" "$M/project/other.txt"
                    """)
                try await domain.synchronize()
                try await domain.shell(
                    """
                    cd "$C"; seen=$(find . -mindepth 1 -not -path './.promisefs*' | LC_ALL=C sort | tr '\\n' ' ')
                    [ "$seen" = "./project ./project/.promisefsignore \
                    ./project/keep.o ./project/other.txt ./project/read.txt ./project/scratch ./project/scratch/z " ]
                    "$P" pending "$M" --excluded | grep -q 'project/build/y'
                    mv "$M/project/build" "$M/project/sent"; "$P" sync "$M" --wait; [ -e "$C/project/sent/y" ]
                    """)
            }
        }
    }
}
