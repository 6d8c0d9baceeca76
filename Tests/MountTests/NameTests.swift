import Testing

extension MountSuites {
    /// Every kind of name, size, mode and link survives the way to the provider and back to a cold mount.
    @Suite struct NameTests {
        /// > create, mkdir, symlink: local at once.
        /// > mknod: fifos, sockets and devices work and stay on this machine.
        /// > symlink: the target is bytes and is kept as it is.
        /// > Mode, owner, group and modification time travel with an item;
        @Test(.timeLimit(.minutes(5))) func everyKindOfFileArrivesAtTheProviderAndComesBack() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    python3 "$W/make-tree.py" "$T/tree" --files 400 --seed 23 > /dev/null
                    cp -a "$T/tree" "$M/tree"
                    python3 "$W/compare-trees.py" "$T/tree" "$M/tree" --links
                    """, seconds: 120)
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
                // The same folder by a second domain that knows nothing yet.
                var options = MountedDomain.Options()
                options.cloud = domain.cloud
                try await MountedDomain.with(options) { cold in
                    try await cold.shell(
                        "python3 \"$W/compare-trees.py\" '\(domain.root)/tmp/tree' \"$M/tree\" --no-folder-times", seconds: 120)
                }
            }
        }

        /// It was "File name too long", of a file that the program had open.
        @Test(.timeLimit(.minutes(2))) func whatIsDeeperThanAPathCanSayIsFoundFromItsFolder() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    deep() { for n in {1..30}; do [ $# = 0 ] || mkdir $N; cd -P $N; done; }
                    N=$(printf 'd%.0s' {1..200}); cd "$M"; deep make; echo deep > file; ln -s file link
                    "$P" sync --wait . ; [ "$("$P" pending .)" = "nothing is pending" ]
                    "$P" evict file; "$P" fetch file; "$P" info file | grep -q 'identifier'; "$P" versions file > /dev/null
                    "$P" find . file | grep -q '/file$'; "$P" pin file; "$P" unpin file; "$P" bookmark create file > "$T/mark"
                    [ "$("$P" bookmark resolve "$(cat "$T/mark")" | tail -c 6)" = "/file" ]
                    "$P" coordinate write file -- sh -c 'echo more >> file'; "$P" sync --wait .
                    cd "$C"; deep; [ "$(tail -n 1 file)" = more ]; cd /; rm -r "$M"/d*; "$P" sync --wait "$M"; not ls "$C"/d*
                    """, seconds: 60)
            }
        }

        @Test(.timeLimit(.minutes(3))) func aSparseFileOf100GiBStaysSmall() async throws {
            var options = MountedDomain.Options()
            options.prepare =
                "truncate -s 100G \"$C/remote\"; printf END | dd of=\"$C/remote\" bs=1 seek=60G conv=notrunc status=none"
            try await MountedDomain.with(options) { domain in
                let middle = try await domain.shell(
                    "[ \"$(stat -c %s \"$M/remote\")\" = 107374182400 ]; "
                        + "dd if=\"$M/remote\" bs=3 skip=60G iflag=skip_bytes count=1 status=none"
                )
                #expect(middle.output == "END" && middle.elapsed < .seconds(60), "not all of it")
                try await domain.shell(
                    """
                    truncate -s 100G "$M/local"; printf MIDDLE | dd of="$M/local" bs=1 seek=50G conv=notrunc status=none
                    [ "$(stat -c %s "$M/local")" = 107374182400 ]; [ "$(du -sk "$S" | cut -f1)" -lt 200000 ]
                    """)
                try await domain.synchronize(seconds: 90)
                try await domain.shell(
                    """
                    [ "$(stat -c %s "$C/local")" = 107374182400 ]; [ "$(du -k "$C/local" | cut -f1)" -lt 100000 ]
                    [ "$(dd if="$C/local" bs=6 skip=50G iflag=skip_bytes count=1 status=none)" = MIDDLE ]
                    """)
                #expect(try await domain.status().bytesUploaded < 1 << 30)
            }
        }

        /// > A folder is listed at the provider when it is first read, then kept and followed.
        @Test(.timeLimit(.minutes(5))) func aFolderOfManyEntriesIsListedCompletely() async throws {
            let count = Machine.isFullScale ? 100_000 : 10_000
            var options = MountedDomain.Options()
            options.prepare = "mkdir \"$C/many\"; cd \"$C/many\"; seq -f 'entry %.0f' \(count) | xargs -d '\\n' touch"
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    [ "$(ls -U "$M/many" | sort -u | wc -l)" = \(count) ]; [ "$(ls -lU "$M/many" | wc -l)" = \(count + 1) ]
                    [ "$(find "$M/many" -name 'entry 77*' | wc -l)" = "$(find "$C/many" -name 'entry 77*' | wc -l)" ]
                    mkdir "$M/local"; cd "$M/local"; seq -f 'made %.0f' 2000 | xargs -d '\\n' touch
                    [ "$(ls -U | sort -u | wc -l)" = 2000 ]; cd /; rm -r "$M/local"; [ ! -e "$M/local" ]
                    """, seconds: 200)
                #expect(try await domain.status().bytesFetched == 0)
            }
        }

        /// readdir(3) promises that what is there throughout is listed once, whatever comes and goes meanwhile.
        /// > A reader sees the names that are there from when it started or rewound to its end, each once, in the order in
        @Test(.timeLimit(.minutes(2))) func aListingIsStableWhileTheFolderChanges() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    python3 - "$M/changing" <<'PYTHON'
                    import os, sys, threading
                    top = sys.argv[1]; os.mkdir(top)
                    stays = {"stays %d" % n for n in range(600)}
                    for name in stays: open(os.path.join(top, name), "w").close()
                    stop = False
                    def churn():
                        number = 0
                        while not stop:
                            path = os.path.join(top, "comes %d" % (number % 50))
                            open(path, "w").close(); os.rename(path, path + " and goes"); os.unlink(path + " and goes")
                            number += 1
                    thread = threading.Thread(target=churn); thread.start()
                    try:
                        for _ in range(30):
                            listed = os.listdir(top)
                            names = [name for name in listed if name.startswith("stays")]
                            assert len(names) == len(set(names)) == 600, len(names)
                    finally:
                        stop = True; thread.join()
                    PYTHON
                    """)
            }
        }

        /// As rm(1) does, and as Samba does, which goes back to places that it remembers.
        @Test(.timeLimit(.minutes(2))) func aReaderGoesOnWhereItWasAfterTheNameThereHasGone() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    python3 - "$M/emptied" <<'PYTHON'
                    import ctypes, os, sys
                    top = sys.argv[1]; os.mkdir(top)
                    for number in range(3000): open("%s/%d" % (top, number), "w").close()
                    removed = 0
                    with os.scandir(top) as entries:
                        for entry in entries:
                            os.unlink(entry.path); removed += 1
                    assert removed == 3000 and os.listdir(top) == [], removed
                    for number in range(1500): open("%s/%d" % (top, number), "w").close()
                    c = ctypes.CDLL(None)
                    c.opendir.restype = c.readdir.restype = ctypes.c_void_p
                    c.telldir.restype = ctypes.c_long
                    c.readdir.argtypes = c.telldir.argtypes = [ctypes.c_void_p]
                    c.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
                    def read(count):
                        names = []
                        while len(names) < count:
                            line = c.readdir(folder)
                            if not line: break
                            name = ctypes.string_at(line + 19)
                            if name not in (b".", b".."): names.append(name)
                        return names
                    folder = c.opendir(top.encode())
                    first = read(1000); place = c.telldir(folder); rest = read(10000)
                    assert len(set(first + rest)) == 1500, len(rest)
                    os.chdir(top)
                    for name in first[500:]: os.rename(name, b"moved " + name)
                    os.unlink(first[0])
                    c.seekdir(folder, place)
                    assert read(10000) == rest
                    c.rewinddir.argtypes = [ctypes.c_void_p]; c.rewinddir(folder)
                    assert len(set(read(10000))) == 1499
                    PYTHON
                    """)
            }
        }
    }
}
