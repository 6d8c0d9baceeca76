import Glibc
import Testing

extension MountSuites {
    /// A folder on an exFAT memory stick, mounted twice.
    @Suite struct MemoryStickMountTests {
        private static let canMountSticks =
            Machine.isRoot
            && ["/usr/sbin/mkfs.exfat", "/usr/sbin/mount.exfat-fuse"].allSatisfy { (path: String) in access(path, F_OK) == 0 }
        /// Containers have loop devices and may not use them.
        private static let noLoopDevice: Int32 = 75

        private static let makeStick = """
            mkdir "$C/../stick"; truncate -s 256M "$C/../image"; D=$(losetup --find --show "$C/../image") || exit 75
            mkfs.exfat "$D" > /dev/null; mount.exfat-fuse "$D" "$C/../stick" > /dev/null 2>&1; mkdir "$C/../stick/cloud"
            """

        private func options(_ stick: String) -> MountedDomain.Options {
            var options = MountedDomain.Options()
            options.provider = "folder:" + stick + "/cloud"
            return options
        }

        @Test(.enabled(if: canMountSticks, "mounting exFAT needs root and exfat-fuse"), .timeLimit(.minutes(5)))
        func twoMountsOfAMemoryStickShowTheSame() async throws {
            try await MountedDomain.with(mounts: false) { stick in
                let point = stick.root + "/stick"
                let made = try await stick.shell(MemoryStickMountTests.makeStick, status: nil)
                if made.status == MemoryStickMountTests.noLoopDevice {
                    return print("not tested: no loop device may be used here")
                }
                try #require(made.status == 0, "\(made.error)")
                do {
                    try await MountedDomain.with(options(point)) { one in
                        try await MountedDomain.with(options(point)) { other in try await work(one, other, point) }
                    }
                } catch {
                    try await pullOut(stick)
                    throw error
                }
                try await pullOut(stick)
            }
        }

        private func pullOut(_ stick: MountedDomain) async throws {
            try await stick.shell(
                """
                D=$(losetup --associated "$C/../image" --noheadings --output NAME); umount -l "$C/../stick"
                losetup --detach "$D"
                """)
        }

        private func work(_ one: MountedDomain, _ other: MountedDomain, _ stick: String) async throws {
            try await one.shell(
                #"""
                cp -r "$R/Sources/PromiseFolder" "$M/src"; mkdir "$M/sub|dir"
                echo small > "$M/source"; echo large > "$M/SOURCE"; printf a > "$M/a:b?"; printf b > "$M/"$'bad\xff\xfe'
                printf c > "$M/sub|dir/tail. "; printf d > "$M/"$'e\u0301'; printf e > "$M/"$'\u00e9'; chmod 600 "$M/a:b?"
                """#)
            try await one.synchronize()
            try await one.shell(
                """
                rm "$M/source"; mv "$M/src" "$M/source"; rm "$M/source/MovedPaths.swift"
                echo more >> "$M/source/FolderError.swift"
                touch -d 2021-01-01 "$M/source/FolderPath.swift"; mv "$M/source/FolderProbe.swift" "$M/source/folderprobe.swift"
                """)
            try await one.synchronize()
            try await one.shell("[ \"$(stat -c %a \"$M/a:b?\")\" = 600 ]")
            try await expectTheSame(one, other)
            try await other.shell(
                "mv \"$M/source/TemporaryFiles.swift\" \"$M/sub|dir\"; echo new > \"$M/source/FolderPath.swift\"")
            try await other.synchronize()
            try await expectTheSame(other, one)
            try await other.shell("[ $(ls '\(stick)/cloud/.promisefs/uploads' | wc -l) = 0 ]")
        }

        private func expectTheSame(_ one: MountedDomain, _ other: MountedDomain) async throws {
            try await one.shell(
                """
                for i in $(seq 100); do diff -r "$M" '\(other.mount)' > "$T/diff" && exit 0; sleep 0.2; done
                cat "$T/diff"; exit 1
                """)
        }
    }
}
