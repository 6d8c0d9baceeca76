import Glibc
import Testing

extension MountSuites {
    /// Servers on a disk that takes upper and lower case for one.
    @Suite struct TwinNameMountTests {
        static let canMountSticks =
            Machine.isRoot
            && ["/usr/sbin/mkfs.exfat", "/usr/sbin/mount.exfat-fuse"].allSatisfy {
                (path: String) in access(path, F_OK) == 0
            }
        /// Containers have loop devices and may not use them.
        private static let noLoopDevice: Int32 = 75

        /// `body` runs while what the domain's server serves is on exFAT.
        static func withDisk(
            _ domain: MountedDomain, _ body: () async throws -> Void
        ) async throws {
            let made = try await domain.shell(
                """
                truncate -s 64M "$T/image"; D=$(losetup --find --show "$T/image") || exit 75
                mkfs.exfat "$D" > /dev/null
                mount.exfat-fuse -o allow_other,umask=0 "$D" "$C" > /dev/null 2>&1
                """, status: nil)
            if made.status == TwinNameMountTests.noLoopDevice {
                return print("not tested: no loop device may be used here")
            }
            try #require(made.status == 0, "\(made.error)")
            let end = """
                D=$(losetup --associated "$T/image" --noheadings --output NAME)
                umount -l "$C"; losetup --detach $D
                """
            do {
                try await body()
            } catch {
                try await domain.shell(end)
                throw error
            }
            try await domain.shell(end)
        }

        private static let tree = """
            echo original > "$C/readme"; mkdir "$C/folder"; echo in > "$C/folder/inner"
            """

        /// What others renamed stood twice, and whoever removed one of the two names removed the
        /// file. A rename here was refused for ever.
        @Test(
            .enabled(if: canMountSticks && WebDAVServer.canRun, "mounting exFAT needs root"),
            .timeLimit(.minutes(3)))
        func anItemStandsOnceWhateverTheCaseOfItsName() async throws {
            try await WebDAVServer.with { server in
                try await MountedDomain.with(server.options(), mounts: false) { domain in
                    try await TwinNameMountTests.withDisk(domain) {
                        try await domain.shell(TwinNameMountTests.tree)
                        try await domain.remount()
                        try await renameThere(domain)
                        try await renameHere(domain)
                        try await expectOneOfTwins(domain)
                        try await domain.shell("\"$P\" unmount \"$M\"")
                    }
                }
            }
        }

        private func renameThere(_ domain: MountedDomain) async throws {
            try await domain.shell(
                """
                ls -lR "$M" > /dev/null; cat "$M/readme" "$M/folder/inner" > /dev/null
                node=$(stat -c %i "$M/readme")
                mv "$C/readme" "$C/README"; mv "$C/folder" "$C/between"; mv "$C/between" "$C/FOLDER"
                within 30 '[ "$(ls "$M" | paste -sd " ")" = "FOLDER README" ]'
                [ "$(stat -c %i "$M/README")" = $node ]; [ "$(cat "$M/FOLDER/inner")" = in ]
                echo more >> "$M/README"
                """)
            try await domain.synchronize()
            // By another name, or at once, the disk may show what it had before.
            try await domain.shell(
                """
                within 10 '[ "$(cat "$C/README" | paste -sd" ")" = "original more" ]'
                """)
        }

        private func renameHere(_ domain: MountedDomain) async throws {
            try await domain.shell("mv \"$M/README\" \"$M/ReadMe\"; mv -T \"$M/FOLDER\" \"$M/folder\"")
            try await domain.synchronize()
            try await domain.shell(
                """
                [ "$(ls "$C" | paste -sd ' ')" = "ReadMe folder" ]
                [ "$(ls "$M" | paste -sd ' ')" = "ReadMe folder" ]
                [ "$(cat "$C/ReadMe" "$C/folder/inner" | paste -sd' ')" = "original more in" ]
                """)
        }

        private func expectOneOfTwins(_ domain: MountedDomain) async throws {
            try await domain.shell(
                """
                echo beside > "$M/readme"; status=0
                "$P" sync "$M" --wait 2> "$T/err" || status=$?
                [ $status = 5 ]; grep -q "'ReadMe', which is there, for one name" "$T/err"
                [ "$(cat "$C/ReadMe" | paste -sd' ')" = "original more" ]
                rm "$M/readme"; "$P" sync "$M" --wait; sleep 2
                [ "$(ls "$M" | paste -sd ' ')" = "ReadMe folder" ]
                [ "$(cat "$M/ReadMe" "$C/ReadMe" | paste -sd' ')" = "original more original more" ]
                """)
        }
    }
}
