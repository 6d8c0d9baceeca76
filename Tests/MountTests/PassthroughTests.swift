import Foundation
import Testing

extension MountSuites {
    /// What programs do to local files, with the kernel reading and writing the content file itself and without.
    @Suite struct PassthroughTests {
        @Test(.timeLimit(.minutes(2)), .enabled(if: Machine.hasKernelPassthrough, "passthrough needs root and Linux 6.9"))
        func aMountByRootHasPassthroughAndSaysSo() async throws {
            try await MountedDomain.with { domain in
                let status = try await domain.status()
                #expect(status.hasPassthrough)
                let shown = try await domain.shell("\"$P\" status \"$M\"")
                #expect(shown.output.localizedCaseInsensitiveContains("passthrough"))
            }
        }

        /// The same calls in a folder of the disk below must be answered with the same bytes, sizes and errnos.
        /// > Names of any kind that the caller may set (`user.`, `trusted.`, `security.`), values up to 64 KiB.
        /// > flock, fcntl locks: the kernel's own, true for all programs of this mount;
        /// > mmap: private and shared.
        @Test(.timeLimit(.minutes(3)), arguments: [[], ["--no-passthrough"]])
        func fileOperationsAreAnsweredAsByTheDiskBelow(arguments: [String]) async throws {
            var options = MountedDomain.Options()
            options.arguments = arguments
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    mkdir "$T/beside" "$M/inside"
                    python3 "$W/file-operations.py" "$T/beside" > "$T/expected"
                    python3 "$W/file-operations.py" "$M/inside" > "$T/actual"
                    diff -u "$T/expected" "$T/actual"
                    python3 "$W/compare-trees.py" "$T/beside" "$M/inside" --no-times --links
                    """)
                #expect(try await domain.status().hasPassthrough == (arguments.isEmpty && Machine.hasKernelPassthrough))
                try await domain.synchronize()
                // The fifo is local only.
                try await domain.expectProviderEqualsMount("--ignore fifo")
            }
        }

        /// What is written through a mapping passes both the daemon and the kernel's attributes by.
        /// > While a file is open for writing, size and times are the content file's and the kernel asks for them every second.
        @Test(.timeLimit(.minutes(2)), arguments: [[], ["--no-passthrough"]])
        func aMappedWriteMovesTheModificationTime(arguments: [String]) async throws {
            var options = MountedDomain.Options()
            options.arguments = arguments
            try await MountedDomain.with(options) { domain in
                try await domain.shell("head -c 8192 /dev/zero > \"$M/mapped\"")
                try await domain.synchronize()
                try await domain.shell(
                    """
                    python3 - "$M/mapped" <<'PYTHON'
                    import mmap, os, sys, time
                    before = os.stat(sys.argv[1])
                    with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 8192) as mapping:
                        os.fstat(file.fileno())
                        mapping[4097] = 1
                    end = time.time() + 30
                    while time.time() < end:
                        after = os.stat(sys.argv[1])
                        if after.st_mtime_ns > before.st_mtime_ns and after.st_ctime_ns > before.st_ctime_ns: sys.exit(0)
                        time.sleep(0.05)
                    sys.exit("the times are those from before")
                    PYTHON
                    """)
            }
        }

        /// fio checks what it reads against what it wrote; sizes and times come from the content file meanwhile.
        @Test(.timeLimit(.minutes(3)), arguments: [[], ["--no-passthrough"]])
        func manyWritersOfOneFileSeeEachOther(arguments: [String]) async throws {
            var options = MountedDomain.Options()
            options.arguments = arguments
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    python3 - "$M/shared" <<'PYTHON'
                    import os, sys
                    path, block, count = sys.argv[1], 4096, 64
                    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
                    children = []
                    for writer in range(4):
                        child = os.fork()
                        if child == 0:
                            descriptor = os.open(path, os.O_RDWR)
                            for index in range(count):
                                os.pwrite(descriptor, bytes([writer + 1]) * block, (index * 4 + writer) * block)
                            os._exit(0)
                        children.append(child)
                    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
                    data = open(path, "rb").read()
                    assert len(data) == os.stat(path).st_size == 4 * count * block, len(data)
                    for index in range(4 * count):
                        assert data[index * block:(index + 1) * block] == bytes([index % 4 + 1]) * block, index
                    PYTHON
                    """)
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
            }
        }

        /// A file that was open stays registered with the kernel, which must not keep its room when its content goes. The state
        /// is on a disk of its own, in a mount namespace of its own.
        @Test(.timeLimit(.minutes(2)), .enabled(if: Machine.hasKernelPassthrough, "passthrough needs root and Linux 6.9"))
        func contentThatWasReadGivesItsRoomBackWhenItGoes() async throws {
            let script = """
                set -e
                mount -t tmpfs -o size=300M,mode=700 none "$S"
                "$P" mount --state-dir "$S" --domain room --upload-delay 100ms "folder:$C" "$M"
                used() { df --output=used -k "$S" | tail -1; }
                less() {
                    for n in $(seq 100); do [ "$(used)" -lt "$1" ] && return; sleep 0.1; done
                    echo "$2: $(used)" >&2; exit 1
                }
                empty=$(used)
                head -c 40M /dev/urandom > "$M/a"; cp "$M/a" "$M/b"; cat "$M/a" "$M/b" "$M/a" > /dev/null
                [ "$(used)" -gt $((empty + 80000)) ]
                rm "$M/a"
                less $((empty + 60000)) "after removing"
                "$P" sync --wait "$M"; cat "$M/b" > /dev/null
                "$P" evict "$M/b"
                less $((empty + 20000)) "after evicting"
                cat "$M/b" > /dev/null
                : > "$M/b"
                less $((empty + 20000)) "after truncating"
                "$P" unmount --wait "$M"
                """
            try await MountedDomain.with(MountedDomain.Options(), mounts: false) { domain in
                try await domain.shell("cat > \"$T/script\" <<'SCRIPT'\n\(script)\nSCRIPT")
                try await domain.shell("unshare --mount --propagation private bash \"$T/script\"")
            }
        }

        /// > A small file's pages: what is read again of a file of 128 KiB or less comes from the kernel's pages
        @Test(.timeLimit(.minutes(2)), arguments: [[], ["--no-passthrough"], ["--io-uring"]])
        func whatWasWrittenIsWhatASmallFileShowsWhoeverHasItsPages(arguments: [String]) async throws {
            var options = MountedDomain.Options()
            options.arguments = arguments
            options.prepare = "echo before > \"$C/others\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell("python3 \"$W/kept-pages.py\" \"$M\" 3")
                // By somebody else at the provider.
                try await domain.shell("[ \"$(cat \"$M/others\")\" = before ]; cat \"$M/others\"; echo after! > \"$C/others\"")
                try await domain.shell("within 30 '[ \"$(cat \"$M/others\")\" = after! ]'")
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
            }
        }

        /// > Permissions are checked by the kernel (`default_permissions`), with ACLs.
        @Test(.timeLimit(.minutes(2))) func anotherUsersFilesBelongToThatUser() async throws {
            guard Machine.isRoot else { return }
            var options = MountedDomain.Options()
            options.arguments = ["-o", "allow_other"]
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    chmod 755 "$T/.."; chmod 1777 "$M"
                    setpriv --reuid=65534 --regid=65534 --clear-groups touch "$M/theirs"
                    [ "$(stat -c %u:%g "$M/theirs")" = 65534:65534 ]
                    echo secret > "$M/ours"; chmod 600 "$M/ours"
                    not setpriv --reuid=65534 --regid=65534 --clear-groups cat "$M/ours" 2> "$T/err"
                    grep -q 'Permission denied' "$T/err"
                    """)
            }
        }
    }
}
