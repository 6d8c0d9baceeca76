import Foundation
import Testing

extension MountSuites {
    /// What the disk below refuses costs the call that met it and nothing else.
    @Suite struct DiskFaultTests {
        /// One call of each kind; `fault-matrix.py` without a list of labels tries all of them, several times.
        @Test(.timeLimit(.minutes(60))) func aFailingCallIsToldAndLosesNothing() async throws {
            let seed = Machine.seed ?? Int.random(in: 0..<1_000_000_000)
            let labels = "content.truncate.status,filesystem.note,index.journal.append"
            let choice = Machine.isFullScale ? "--calls 3" : "--calls 1 --faults EIO --labels '\(labels)'"
            let result = try await runShell(
                """
                python3 '\(Machine.workloads)/fault-matrix.py' --executable '\(Machine.executable)' --folder '\(Machine.folder)' \
                    --seed \(seed) \(choice)
                """, seconds: 3500)
            #expect(result.status == 0, "seed \(seed):\n\(result.output.suffix(4000))\n\(result.error.suffix(2000))")
        }

        // MARK: Placeholders

        /// What every script begins with: `placeholder` is a file of 8 MiB of `A` at the provider,
        /// `arm` makes calls fail, `told` whether one did, and `end` compares both sides with what
        /// they may hold.
        private static let prelude = """
            import os, subprocess, sys
            mount, cloud, faults = (os.environ[name] for name in ("M", "C", "PROMISEFS_FAULT_FILE"))
            whole, page, expected = b"A" * (8 << 20), 4096, {}
            places = ("inside", 4 << 20), ("across the end", len(whole) - page), ("behind", 9 << 20)
            # What the journal refuses is committed at once, if that works.
            refusals = 3 * ["index.commit 1 EIO"]
            def command(*words):
                words = [os.environ["P"], *words, mount]
                subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
            def arm(*lines):
                with open(faults + ".new", "w") as file: file.write("\\n".join(lines) + "\\n")
                os.rename(faults + ".new", faults)
            def placeholder(name):
                with open(f"{cloud}/{name}", "wb") as file: file.write(whole)
                command("sync", "--wait")
                expected[name] = [whole]
                return f"{mount}/{name}"
            def told(call):
                try: call()
                except OSError: return True
                finally: arm()
                return False
            def mixed(start, *parts):
                bytes = bytearray(whole)
                for part in parts:
                    bytes[start : start + len(part)] = part
                    start += len(part)
                return bytes
            def look(name, top):
                found = open(f"{top}/{name}", "rb").read()
                shown = f"{top}/{name}: {len(found)} bytes, {found.count(0)} zeros, {found.count(65)} A"
                assert any(found == choice for choice in expected[name]), shown
                expected[name] = [found]
            def end():
                for name in expected: look(name, mount)
                for name in expected:
                    # So that it is sent, whatever became of the call that failed.
                    os.setxattr(f"{mount}/{name}", "user.test", b"1")
                    file = os.open(f"{mount}/{name}", os.O_RDWR)
                    if expected[name][0]: os.pwrite(file, expected[name][0][:1], 0)
                    os.close(file)
                command("sync", "--wait")
                for name in expected: look(name, cloud)
                command("verify")

            """

        private func run(_ script: String, preparing: String = "") async throws {
            let faults = "\(Machine.folder)/pfs-faults-\(UUID().uuidString)"
            defer {
                for end in ["", ".log", ".new"] {
                    try? FileManager.default.removeItem(atPath: faults + end)
                }
            }
            var options = MountedDomain.Options()
            options.environment["PROMISEFS_FAULT_FILE"] = faults
            // Nothing is sent, and nothing noted of that, while calls are made to fail.
            options.uploadDelay = "10m"
            options.prepare = preparing
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    "python3 - <<'END'\n\(Self.prelude)\(script)\nEND", seconds: 120)
            }
        }

        /// > A write, `fallocate` or `copy_file_range` that fails leaves bytes and size as they were,
        ///
        /// The range counted as here before the bytes were, so that zeros were read, and sent.
        @Test(.timeLimit(.minutes(3))) func aWriteIntoAPlaceholderThatFailsLeavesItAsItWas()
            async throws
        {
            try await run(
                """
                for name, start in places:
                    file = os.open(placeholder(name), os.O_RDWR)
                    arm("content.write 1 ENOSPC")
                    assert told(lambda: os.pwrite(file, b"B" * 3 * page, start))
                    assert os.fstat(file).st_size == len(whole)
                    os.close(file)
                end()
                """)
        }

        @Test(.timeLimit(.minutes(3))) func aWriteThatEndsEarlyIsToldAsFarAsItCame() async throws {
            try await run(
                """
                for name, start in places[:2]:
                    file = os.open(placeholder(name), os.O_RDWR)
                    arm("content.write 1 short", "content.write 2 ENOSPC")
                    assert os.pwrite(file, b"B" * 4 * page, start) == 2 * page
                    arm()
                    os.close(file)
                    expected[name] = [mixed(start, b"B" * 2 * page)]
                end()
                """)
        }

        /// > A write over bytes of a file that is still being fetched, when only the index fails:
        ///
        /// The bytes are in the content file then, and those that were not here before are not
        /// taken for what was written.
        @Test(.timeLimit(.minutes(3))) func aWriteThatTheIndexRefusesIsTakenBack() async throws {
            try await run(
                """
                for name, start in places:
                    file = os.open(placeholder(name), os.O_RDWR)
                    arm("index.journal.append 1 EIO", *refusals)
                    assert told(lambda: os.pwrite(file, b"B" * 3 * page, start))
                    assert os.fstat(file).st_size == len(whole)
                    os.close(file)
                # What was edited before stays edited, by one of the two writes. Of fetches, which
                # an edit begins, the index would be told, too.
                start, old, new = 4 << 20, b"B" * page, b"C" * page
                file = os.open(placeholder("edited"), os.O_RDWR)
                with open(os.environ["PROMISEFS_PROVIDER_FAULTS"], "w") as orders:
                    orders.write("hang=true\\nonly=fetchContents\\n")
                os.pwrite(file, old, start)
                arm("index.journal.append 1 EIO", *refusals)
                assert told(lambda: os.pwrite(file, new + new, start))
                os.close(file)
                with open(os.environ["PROMISEFS_PROVIDER_FAULTS"], "w"): pass
                expected["edited"] = [mixed(start, old), mixed(start, new), mixed(start, new, new)]
                end()
                """)
        }

        /// The index tries what must not fail a second time, with the room that it has kept back. The first try had ended the
        /// writing already, so the second one noted nothing, and the file was shown empty until the next start.
        @Test(.timeLimit(.minutes(3))) func whatIsNotedAtTheSecondTryIsNotedWhole() async throws {
            try await run(
                """
                import time
                text = b"B" * 700_000
                for name in "one", "two":
                    file = os.open(f"{mount}/{name}", os.O_CREAT | os.O_RDWR)
                    os.pwrite(file, text, 0)
                    arm("index.journal.append 1 ENOSPC", "index.commit 1 ENOSPC")
                    os.close(file)
                    time.sleep(2)
                    arm()
                    assert os.path.getsize(f"{mount}/{name}") == len(text)
                    expected[name] = [text]
                end()
                """)
        }

        /// What was to be cut off counted as zeros that are here.
        @Test(.timeLimit(.minutes(3))) func aTruncationOfAPlaceholderThatFailsLeavesItAsItWas()
            async throws
        {
            try await run(
                """
                truncation, index = "content.truncate 1 EIO", "index.journal.append {} EIO"
                refused = 0
                for size in (0, 5_000_000, 9_000_000):
                    for fault in (truncation, index.format(1), index.format(2)):
                        for is_read in (False, True):
                            path = placeholder(f"{size} {fault} {is_read}")
                            if is_read: assert open(path, "rb").read(page) == whole[:page]
                            arm(fault, *refusals)
                            is_told = told(lambda: os.truncate(path, size))
                            after = whole[:size] + bytes(max(0, size - len(whole)))
                            # What was cut off before the index refused it cannot come back.
                            may_have_happened = size < len(whole) and fault != truncation
                            choices = [whole, after] if may_have_happened else [whole]
                            expected[os.path.basename(path)] = choices if is_told else [after]
                            # The index may be told of something else at that moment, or once only.
                            assert is_told or fault != truncation
                            refused += is_told and fault != truncation
                assert refused > 4, refused
                end()
                """)
        }

        @Test(.timeLimit(.minutes(3))) func aCopyThatEndsEarlyIsToldAsFarAsItCame() async throws {
            try await run(
                """
                for name, byte in ("from", b"B"), ("to", b"A"):
                    with open(f"{mount}/{name}", "wb") as file: file.write(byte * 8 * page)
                source = os.open(f"{mount}/from", os.O_RDONLY)
                target = os.open(f"{mount}/to", os.O_RDWR)
                arm("content.copy 1 short", "content.copy 2 ENOSPC")
                assert os.copy_file_range(source, target, 4 * page, 0, 2 * page) == 2 * page
                arm("content.copy 1 ENOSPC")
                assert told(lambda: os.copy_file_range(source, target, page, 0, 0))
                arm("content.allocate 1 ENOSPC")
                assert told(lambda: os.posix_fallocate(target, 0, 16 * page))
                assert os.fstat(target).st_size == 8 * page
                copied = b"A" * 2 * page + b"B" * 2 * page + b"A" * 4 * page
                expected.update({"from": [b"B" * 8 * page], "to": [copied]})
                end()
                """)
        }

        @Test(
            .timeLimit(.minutes(3)),
            .enabled(if: Machine.isRoot, "a small disk can be made by root only"))
        func aFullDiskLeavesAPlaceholderAsFarAsItWasWritten() async throws {
            try await run(
                """
                path, start, written = placeholder("large"), 4 << 20, b""
                file = os.open(path, os.O_RDWR)
                hog = os.open(os.environ["S"] + "/somebody else's", os.O_WRONLY | os.O_CREAT)
                try:
                    while True: os.write(hog, bytes(page))
                except OSError: pass
                try:
                    while len(written) < 2 << 20:
                        written += b"B" * os.pwrite(file, b"B" * 100_000, start + len(written))
                except OSError: pass
                assert len(written) < 2 << 20
                assert told(lambda: os.posix_fallocate(file, 0, 64 << 20))
                assert os.fstat(file).st_size == len(whole)
                os.ftruncate(hog, 0)
                os.close(hog)
                os.close(file)
                expected["large"] = [mixed(start, written)]
                end()
                """, preparing: "mount -t tmpfs -o size=64M,mode=700 none \"$S\"")
        }
    }
}
