import Foundation
import Testing

extension MountSuites {
    /// Every call is answered as by the disk below: by the kernel's own reading and writing, through the daemon, and where
    /// nothing was local when the call came.
    @Suite struct PosixTests {
        static let modes: [[String]] = [[], ["--no-passthrough"]]

        /// Runs a script of `scripts/workloads` in the mount and beside it, as root: other users' answers are part of it.
        private func compare(_ script: String, _ arguments: [String]) async throws {
            guard Machine.isRoot else { return }
            var options = MountedDomain.Options()
            // As the disk below is mounted; a FUSE mount has neither devices nor programs that lend privilege unless told.
            options.arguments = arguments + ["-o", "dev,suid"]
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    chmod 755 "$T/.." "$T"; mkdir -m 777 "$T/beside" "$M/inside"
                    python3 "$W/\(script)" "$T/beside" > "$T/expected"
                    python3 "$W/\(script)" "$M/inside" > "$T/actual"
                    diff -u "$T/expected" "$T/actual"
                    """, seconds: 200)
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
            }
        }

        /// Each operation on names in each situation that makes it fail; each kind of file renamed over each other; folders
        /// of other users, sticky ones included.
        /// > Names are 1 to 255 bytes without `/` and NUL, compared bytewise.
        /// > rename: one step, local, fetches nothing.
        @Test(.timeLimit(.minutes(5)), arguments: modes)
        func everyErrorIsTheOneOfTheDiskBelow(arguments: [String]) async throws {
            try await compare("posix-errors.py", arguments)
        }

        /// Owners by set-group-ID folders and umask, bits that lend privilege, which call moves which time, nanoseconds, ACLs.
        /// > Writing, truncating, `fallocate` and `copy_file_range` by anybody but root clear set-user-ID and, on an
        /// > Access times are set when a file is made and by `utimensat`.
        /// > Times have nanoseconds, from 1677 to 2262; beyond, they are that end.
        /// > What a user makes belongs to that user and its group, in a set-group-ID folder to the folder's group;
        @Test(.timeLimit(.minutes(5)), arguments: modes)
        func ownersBitsAndTimesAreThoseOfTheDiskBelow(arguments: [String]) async throws {
            try await compare("posix-ownership.py", arguments)
        }

        /// fallocate in all modes, holes, copies, mappings, O_TMPFILE, unlinked open files, rename flags, special files, locks.
        /// > `O_APPEND`, `O_DIRECT`, `O_SYNC` and `O_DSYNC` are left to the kernel.
        /// > fallocate: allocating, `KEEP_SIZE`, `PUNCH_HOLE` and `ZERO_RANGE` are passed to the disk below, with its errors;
        /// > copy_file_range: by the disk below (reflinks included) when both are whole;
        @Test(.timeLimit(.minutes(5)), arguments: modes)
        func contentCallsDoWhatTheDiskBelowDoes(arguments: [String]) async throws {
            try await compare("posix-content.py", arguments)
        }

        /// > RENAME_EXCHANGE: two files whose content is local exchange their contents under their names;
        @Test(.timeLimit(.minutes(2))) func exchangedItemsAreExchangedAtTheProvider() async throws {
            var options = MountedDomain.Options()
            options.prepare = """
                mkdir -p "$C/one/deep" "$C/two"; echo 1 > "$C/one/deep/a"; echo 2 > "$C/two/b"
                echo first > "$C/first"; echo second > "$C/second"; ln -s first "$C/link"
                """
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    Self.exchange + """
                        ls "$M" "$M/one" "$M/one/deep" "$M/two" > /dev/null
                        identifier() { getfattr --absolute-names --only-values -n user.promisefs.identifier "$1"; }
                        before=$(identifier "$M/first")
                        exchange "$M/one" "$M/two"; exchange "$M/first" "$M/second"; exchange "$M/link" "$M/one/b"
                        [ "$(identifier "$M/second")" = "$before" ]
                        """)
                #expect(try await domain.status().bytesFetched == 0)
                try await domain.synchronize()
                try await domain.shell(
                    """
                    [ "$(cat "$C/two/deep/a")" = 1 ]; [ "$(readlink "$C/one/b")" = first ]; [ "$(cat "$C/link")" = 2 ]
                    [ "$(cat "$C/first")" = second ]; [ "$(cat "$C/second")" = first ]
                    [ "$(cat "$M/first")" = second ]; [ "$(stat -c %h "$M/two")" = 3 ]
                    """)
                try await domain.expectProviderEqualsMount()
            }
        }

        /// > A folder shows 4096 bytes, and 2 links and one for each subfolder;
        @Test(.timeLimit(.minutes(2))) func foldersCountTheirSubfoldersAlsoThoseOfTheProvider() async throws {
            var options = MountedDomain.Options()
            options.prepare = "mkdir -p \"$C/top/one\" \"$C/top/two/three\"; echo x > \"$C/top/file\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    links() { stat -c %h "$M/$1"; }
                    ls "$M" "$M/top" "$M/top/two" > /dev/null
                    within 5 '[ "$(links .) $(links top) $(links top/two)" = "3 4 3" ]'
                    mkdir "$C/top/four"; within 10 '[ "$(links top)" = 5 ]'
                    mv "$C/top/four" "$C/top/two/four"; within 10 '[ "$(links top) $(links top/two)" = "4 4" ]'
                    rm -r "$C/top/two/four"; within 10 '[ "$(links top/two)" = 3 ]'
                    """)
            }
        }

        /// > O_TMPFILE makes a file that has no name until `linkat` gives it one.
        @Test(.timeLimit(.minutes(2))) func aFileWithoutANameIsGoneWithTheDaemonAndSentOnceItHasOne() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    python3 - <<'PYTHON'
                    import os, sys
                    sys.path.insert(0, os.environ["W"])
                    from posix_calls import *
                    os.chdir(os.environ["M"])
                    file = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o640)
                    os.write(file, b"named")
                    link_nameless(file, "named")
                    os.write(file, b" later")
                    PYTHON
                    [ "$(cat "$M/named")" = "named later" ]
                    """)
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
                try await domain.shell(
                    """
                    cat > "$T/hold.py" <<'PYTHON'
                    import os, time
                    os.write(os.open(os.environ["M"], os.O_TMPFILE | os.O_RDWR), b"x" * 99_999)
                    open(os.environ["T"] + "/held", "w").close()
                    time.sleep(99)
                    PYTHON
                    python3 "$T/hold.py" & echo $! > "$T/holder"; within 20 '[ -e "$T/held" ]'
                    """)
                try await domain.kill9()
                try await domain.shell(
                    """
                    kill "$(cat "$T/holder")"; \(domain.mountCommand); "$P" verify "$M"; [ "$(ls "$M")" = named ]
                    [ -z "$(find "$S" -type f -size 99999c)" ]
                    """)
            }
        }

        /// The kernel has forgotten what it knew by then, and asks for nodes by their numbers.
        /// > File handles (`name_to_handle_at`, as NFS servers and backup programs use them) are good for as long as the item
        @Test(.enabled(if: getuid() == 0, "file handles are for root"), .timeLimit(.minutes(2)))
        func fileHandlesAreGoodAfterAnotherMount() async throws {
            try await MountedDomain.with { domain in
                try await domain.shell(
                    """
                    mkdir -p "$M/a/b"; echo content > "$M/a/b/file"; echo gone > "$M/gone"
                    cat > "$T/handles.py" <<'PYTHON'
                    import ctypes, errno, os, sys
                    libc, top, kept = ctypes.CDLL(None, use_errno=True), os.environ["M"], os.environ["T"] + "/handle."
                    names = ["a/b", "a/b/file", "gone"]
                    if sys.argv[1] == "make":
                        for number, name in enumerate(names):
                            handle, mount = ctypes.create_string_buffer(b"\\x80\\0\\0\\0", 136), ctypes.c_int()
                            path = os.path.join(top, name).encode()
                            assert libc.name_to_handle_at(-100, path, handle, ctypes.byref(mount), 0) == 0, ctypes.get_errno()
                            open(kept + str(number), "wb").write(handle.raw)
                        sys.exit()
                    mount = os.open(top, os.O_RDONLY)
                    def opened(number):
                        handle = ctypes.create_string_buffer(open(kept + str(number), "rb").read(), 136)
                        return libc.open_by_handle_at(mount, handle, os.O_RDONLY)
                    folder, file = opened(0), opened(1)
                    assert os.listdir(folder) == ["file"] and os.read(file, 99) == b"content\\n"
                    assert os.readlink(f"/proc/self/fd/{folder}") == os.path.join(top, "a/b")
                    assert opened(2) == -1 and ctypes.get_errno() == errno.ESTALE
                    PYTHON
                    python3 "$T/handles.py" make; rm "$M/gone"; "$P" unmount --wait "$M"
                    """)
                try await domain.remount()
                try await domain.shell("python3 \"$T/handles.py\" use")
            }
        }

        private static let exchange = """
            exchange() {
                python3 -c 'import os, sys; sys.path.insert(0, os.environ["W"]); from posix_calls import *
            renameat2(sys.argv[1], sys.argv[2], EXCHANGE)' "$@"
            }

            """
    }
}
