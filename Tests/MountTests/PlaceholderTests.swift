import Foundation
import Testing

extension MountSuites {
    /// A tree of files as real ones are, mounted cold: looking costs nothing, reading brings exactly what is there, and
    /// evicting gives the disk back.
    @Suite struct PlaceholderTests {
        @Test(.timeLimit(.minutes(15))) func lookingFetchesNothingReadingFetchesAllAndEvictingFreesTheDisk() async throws {
            var options = MountedDomain.Options()
            options.prepare = "python3 \"$W/make-tree.py\" \"$C\" --files \(Machine.isFullScale ? 10_000 : 2_000) --seed 11"
            try await MountedDomain.with(options) { domain in
                let empty = try await diskUse(domain)
                try await domain.shell(
                    """
                    find "$M" > /dev/null
                    ls -lR "$M" > /dev/null
                    find "$M" -exec stat -- {} + > /dev/null
                    du -a "$M" > /dev/null
                    find "$M" -type f -size +1M > /dev/null
                    """, seconds: 300)
                var status = try await domain.status()
                #expect(status.bytesFetched == 0 && status.cacheBytes == 0, "looking must not fetch")
                try await compare(domain, "--no-content")
                status = try await domain.status()
                #expect(status.bytesFetched == 0, "comparing modes, times and links must not fetch")

                try await domain.shell("diff -r --no-dereference --exclude=.promisefs \"$C\" \"$M\"", seconds: 600)
                try await compare(domain)
                let size = try #require(UInt64(try await domain.shell(sizeOfFiles).text))
                let fetched = try await domain.status().bytesFetched
                #expect(fetched == size, "each byte is fetched once")
                let full = try await diskUse(domain)
                #expect(full > empty + size / 2, "content is here now")

                try await domain.shell("\"$P\" evict \"$M\"", seconds: 120)
                #expect(try await domain.status().cacheBytes == 0)
                let evicted = try await diskUse(domain)
                #expect(
                    evicted < empty + (full - empty) / 20 + 8 << 20, "evicting gives the disk back: \(empty) \(full) \(evicted)")
                try await compare(domain)
            }
        }

        /// Hard links are one file: their content is fetched, and counted, once.
        private let sizeOfFiles =
            "find \"$C\" -path \"$C/.promisefs\" -prune -o -type f -printf '%s\\n'"
            + " | awk '{ total += $1 } END { printf \"%d\", total }'"

        private func compare(_ domain: MountedDomain, _ more: String = "") async throws {
            let owners = Machine.isRoot ? "--owners" : ""
            try await domain.shell("python3 \"$W/compare-trees.py\" \"$C\" \"$M\" \(owners) \(more)", seconds: 600)
        }

        private func diskUse(_ domain: MountedDomain) async throws -> UInt64 {
            try #require(UInt64(try await domain.shell("du -s --block-size=1 \"$S\" | cut -f1").text))
        }

        /// > A placeholder shows its full size and at least one block, so that no archiver takes it for a hole.
        /// > lseek `SEEK_DATA`, `SEEK_HOLE`:
        @Test(.timeLimit(.minutes(2))) func aPlaceholderIsNeverTakenForAHole() async throws {
            var options = MountedDomain.Options()
            options.prepare = "for n in 1 2 3 4; do head -c 3000000 /dev/urandom > \"$C/file $n\"; done"
            try await MountedDomain.with(options) { domain in
                try await domain.shell("for f in \"$M\"/*; do [ \"$(stat -c %b -- \"$f\")\" -ge 1 ]; done")
                #expect(try await domain.status().bytesFetched == 0)
                try await domain.shell(
                    """
                    tar --create --sparse --file="$T/archive" -C "$M" 'file 1'
                    mkdir "$T/out"; tar --extract --file="$T/archive" -C "$T/out"; cmp "$T/out/file 1" "$C/file 1"
                    cp --sparse=always "$M/file 2" "$T/copy 2"; cmp "$T/copy 2" "$C/file 2"
                    cp --sparse=auto "$M/file 3" "$T/copy 3"; cmp "$T/copy 3" "$C/file 3"
                    rsync --sparse "$M/file 4" "$T/copy 4"; cmp "$T/copy 4" "$C/file 4"
                    """)
            }
        }

        /// > unlink, rmdir: local at once;
        @Test(.timeLimit(.minutes(2))) func deletingRenamingAndOverwritingFetchNothing() async throws {
            var options = MountedDomain.Options()
            options.prepare = "mkdir \"$C/folder\"; for n in 1 2 3 4 5; do head -c 200000 /dev/urandom > \"$C/$n\"; done"
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    rm "$M/1"; mv "$M/2" "$M/folder/two"; echo new > "$M/3"; truncate -s 0 "$M/4"; chmod 600 "$M/5"
                    touch -d '2001-02-03' "$M/5"
                    """)
                try await domain.synchronize()
                #expect(try await domain.status().bytesFetched == 0)
                try await domain.expectProviderEqualsMount()
            }
        }

        /// > A program that opens the files of a folder in the order of the listing or of their names, from the third on,
        @Test(.timeLimit(.minutes(2))) func whoOpensFilesInOrderFindsTheNextOnesHere() async throws {
            var options = MountedDomain.Options()
            options.prepare = "for n in $(seq 100 199); do head -c 4096 /dev/urandom > \"$C/$n\"; done"
            try await MountedDomain.with(options) { domain in
                try await domain.shell("cat \"$M/150\" \"$M/120\" \"$M/180\" \"$M/110\" > \"$T/out\"; sleep 1")
                #expect(try await domain.status().bytesFetched == 4 * 4096, "who opens here and there gets what he opens")
                try await domain.shell("for n in $(seq 130 138); do cmp \"$M/$n\" \"$C/$n\"; done")
                try await domain.shell(
                    """
                    fetched() { "$P" status --json "$M" | grep -o '"bytesFetched":[0-9]*' | head -n 1 | cut -d: -f2; }
                    within 20 '[ "$(fetched)" -ge \(40 * 4096) ]'
                    """)
                try await domain.shell("diff -r \"$M\" \"$C\" --exclude=.promisefs")
            }
        }

        @Test(.timeLimit(.minutes(2))) func whoReadsFolderByFolderAsListedFindsTheNextOnesHere() async throws {
            var options = MountedDomain.Options()
            options.prepare = """
                for d in $(seq 20); do mkdir "$C/$d"; for n in $(seq 5); do echo "$d $n" > "$C/$d/$n"; done; done
                """
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cd "$M"; find . -type f > "$T/files"
                    for file in $(head -22 "$T/files"); do cat $file > /dev/null; done
                    state() { getfattr --only-values -n user.promisefs.state "$1"; }
                    for file in $(head -40 "$T/files"); do within 20 "[ \\"\\$(state $file)\\" = current ]"; done
                    echo offline=true > "$PROMISEFS_PROVIDER_FAULTS"
                    for file in $(head -40 "$T/files"); do cmp $file "$C/$file"; done
                    """)
            }
        }

        /// > Files of 1 to 8 MiB are fetched ahead in the same way, whole, of a program that has read one such file of the folder
        @Test(.timeLimit(.minutes(2))) func whoReadsLargerFilesWholeFindsTheNextOnesHereAndWhoGlancesDoesNot() async throws {
            var options = MountedDomain.Options()
            options.prepare = """
                mkdir "$C/a" "$C/b"; head -c 2000000 /dev/urandom > "$C/a/10"
                for n in $(seq 11 29); do cp "$C/a/10" "$C/a/$n"; done; cp "$C/a/"* "$C/b"
                """
            try await MountedDomain.with(options) { domain in
                try await domain.shell("for n in $(seq 10 29); do head -c 1000 \"$M/a/$n\" > \"$T/out\"; done; sleep 1")
                #expect(try await domain.status().bytesFetched <= 20 << 20, "half of it")
                try await domain.shell(
                    """
                    for n in $(seq 10 17); do cmp "$M/b/$n" "$C/b/$n"; sleep 0.1; done
                    state() { getfattr --only-values -n user.promisefs.state "$M/b/$1"; }
                    for n in 18 19 20; do within 20 "[ \\"\\$(state $n)\\" = current ]"; done
                    echo offline=true > "$PROMISEFS_PROVIDER_FAULTS"
                    for n in 18 19 20; do cmp "$M/b/$n" "$C/b/$n"; done
                    """)
            }
        }

        /// > A program that lists folder after folder, forwards, backwards or by name, from the third on, finds the next ones
        @Test(.timeLimit(.minutes(2)), arguments: ["cat", "tac", "sort", "sort -r"])
        func whoWalksFindsTheNextFoldersListed(order: String) async throws {
            var options = MountedDomain.Options()
            options.prepare = "for d in $(seq 100 139); do mkdir \"$C/$d\"; echo $d > \"$C/$d/file\"; done"
            try await MountedDomain.with(options) { domain in
                try await domain.shell("ls -U \"$M\" > \"$T/read\"")
                try await domain.shell(
                    """
                    for d in $(\(order) "$T/read" | head -6); do ls "$M/$d" > /dev/null; done
                    listed() { [ "$(getfattr --only-values -n user.promisefs.state "$M/$1")" != placeholder ]; }
                    for d in $(\(order) "$T/read" | head -10); do within 20 "listed $d"; done
                    echo offline=true > "$PROMISEFS_PROVIDER_FAULTS"
                    for d in $(\(order) "$T/read" | head -10); do [ "$(ls "$M/$d")" = file ]; done
                    for d in $(\(order) "$T/read" | tail -3); do not ls "$M/$d" 2> /dev/null; done
                    """)
            }
        }

        /// A time that was set at the provider is another version there, and the content was fetched again for it.
        @Test(.timeLimit(.minutes(2))) func aTimeThatIsSetLeavesTheContentHere() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell("head -c 2000000 /dev/urandom > \"$M/file\"; cp \"$M/file\" \"$T\"")
                try await domain.synchronize()
                try await domain.shell("touch -d '2021-01-01 00:00:01.123456789 UTC' \"$M/file\"")
                try await domain.synchronize()
                try await domain.shell(
                    """
                    [ "$(getfattr --only-values -n user.promisefs.state "$M/file")" = current ]
                    [ "$(stat -c %Y "$C/file")" = 1609459201 ]; cmp "$T/file" "$M/file"
                    """)
                #expect(try await domain.status().bytesFetched == 0)
                try await domain.shell("echo theirs > \"$C/file\"; within 20 '[ \"$(cat \"$M/file\")\" = theirs ]'")
            }
        }

        /// The second name had nowhere to fetch from: the item of the first was deleted with the only copy of the content.
        /// > link: up to 65,000 names of a file (`EMLINK`), `EPERM` for folders.
        @Test(.timeLimit(.minutes(2))) func aPlaceholderOutlivesTheFirstOfItsNames() async throws {
            var options = MountedDomain.Options()
            options.prepare = """
                echo first > "$C/a"; echo second > "$C/b"; head -c 3000000 /dev/urandom > "$T/large"; cp "$T/large" "$C"
                """
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    ln "$M/a" "$M/a2"; rm "$M/a"; ln "$M/large" "$M/large2"; rm "$M/large"
                    ln "$M/b" "$M/b2"
                    """)
                try await domain.synchronize()
                try await domain.shell(
                    """
                    cmp "$T/large" "$C/large2"; [ "$(cat "$C/a2")" = first ]; [ ! -e "$C/a" ]
                    "$P" evict "$M/b"; rm "$M/b"; [ "$(cat "$M/b2")" = second ]
                    """)
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
            }
        }

        /// All of it came, however much that was.
        @Test(.timeLimit(.minutes(3)), arguments: ["unpin", "pin --online-only"])
        func whatIsPinnedNoLongerComesNoFurther(command: String) async throws {
            var options = MountedDomain.Options()
            options.prepare = "head -c 20M /dev/urandom > \"$C/large\""
            try await MountedDomain.with(options) { domain in
                try domain.setFaults(["bandwidth=1000000"])
                try await domain.shell(
                    """
                    fetched() { "$P" status --json "$M" | grep -o '"bytesFetched":[0-9]*' | head -n 1 | cut -d: -f2; }
                    "$P" pin "$M/large"; within 30 '[ "$(fetched)" -gt 500000 ]'
                    "$P" \(command) "$M/large"; sleep 1; before=$(fetched); sleep 2; [ "$(fetched)" = "$before" ]
                    "$P" pin "$M/large"; within 30 '[ "$(fetched)" -gt "$before" ]'
                    """, seconds: 100)
                try domain.setFaults([])
                try await domain.shell("within 60 'cmp \"$M/large\" \"$C/large\"'", seconds: 90)
            }
        }
    }
}
