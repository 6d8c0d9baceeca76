import Testing

extension MountSuites {
    /// A disk that has no room left, or no inode, when a domain is to be mounted.
    @Suite(.enabled(if: Machine.isRoot, "a small disk can be made by root only")) struct FullDiskTests {
        enum Disk: String, CaseIterable, Sendable {
            case memory, ext4, inodes

            /// At `$S`, with room for a domain.
            var prepare: String {
                let made = self == .inodes ? "-N 400" : "-N 2000"
                let image = """
                    truncate -s 64M "$T/image"; mkfs.ext4 -q -m 0 \(made) "$T/image"; mount -o loop "$T/image" "$S"
                    """
                let disk = self == .memory ? "mount -t tmpfs -o size=48M none \"$S\"" : image
                return disk + "; chmod 700 \"$S\"; echo remote > \"$C/file\""
            }

            /// Takes all that is left.
            var fill: String {
                self == .inodes
                    ? "n=0; while touch \"$S/fill $n\" 2>/dev/null; do n=$((n + 1)); done"
                    : "for size in 1M 4k 512; do dd if=/dev/zero bs=$size status=none >> \"$S/fill\" 2>/dev/null || true; done"
            }
        }

        /// SQLite's shared memory found no room, which was told as an I/O error, and what is kept in reserve was not given free.
        @Test(.timeLimit(.minutes(3)), arguments: Disk.allCases)
        func aDiskThatIsFullAfterAnOrderlyUnmountIsNoObstacle(disk: Disk) async throws {
            var options = MountedDomain.Options()
            options.prepare = disk.prepare
            try await MountedDomain.with(options) { domain in
                try await domain.shell("[ \"$(cat \"$M/file\")\" = remote ]; cp \"$M/file\" \"$M/own\"")
                try await domain.synchronize()
                // Again and again: what others take of the reserve while it is in use is missing the next time.
                for _ in 1...5 {
                    try await domain.shell("\"$P\" unmount \"$M\"; \(disk.fill)")
                    try await domain.remount()
                    try await domain.shell("cat \"$M/file\" \"$M/own\" > \"$T/both\"; [ $(grep -c remote \"$T/both\") = 2 ]")
                }
                try await domain.shell("rm \"$M/own\"; within 20 '[ ! -e \"$C/own\" ]'")
            }
        }

        /// It was dropped for the sake of a few blocks, and could not be fetched again.
        @Test(.timeLimit(.minutes(2))) func whatIsHereStaysReadableOnADiskThatOthersFill() async throws {
            var options = MountedDomain.Options()
            options.prepare = Disk.ext4.prepare
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cat "$M/file" > "$T/before"; cp "$M/file" "$M/own"; "$P" sync --wait "$M"; "$P" unmount "$M"
                    \(Disk.ext4.fill)
                    """)
                try await domain.remount()
                try await domain.shell(
                    """
                    \(Disk.ext4.fill)
                    "$P" sync "$M" || true; sleep 3; cmp "$M/file" "$T/before"; cmp "$M/own" "$T/before"
                    """)
            }
        }

        /// What was removed was kept, and whoever had removed it to make room found none.
        @Test(.timeLimit(.minutes(2))) func whatIsRemovedOnAFullDiskMakesRoomAtOnce() async throws {
            var options = MountedDomain.Options()
            options.prepare = Disk.ext4.prepare + "; head -c 20M /dev/urandom > \"$C/large\""
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    cat "$M/large" > "$T/before"; \(Disk.ext4.fill)
                    rm "$M/large"; [ "$("$P" trash list "$M")" = "nothing was removed that is kept" ]
                    within 20 'head -c 16M /dev/zero > "$M/other"'
                    """)
            }
        }

        @Test(.timeLimit(.minutes(2)), arguments: Disk.allCases)
        func aNewDomainOnAFullDiskSaysSoAndLeavesNothing(disk: Disk) async throws {
            var options = MountedDomain.Options()
            options.prepare = disk.prepare + "; " + disk.fill
            try await MountedDomain.with(options, mounts: false) { domain in
                for room in ["", "rm -f \"$S/fill 0\"; [ ! -e \"$S/fill\" ] || truncate -s -40k \"$S/fill\"; "] {
                    let refused = try await domain.shell(
                        room + "\"$P\" mount --state-dir \"$S/new\" --domain new \"folder:$C\" \"$M\"", status: 1)
                    let says = refused.errorText
                    #expect(says.split(separator: "\n").count == 1)
                    #expect(says.contains("is full") || says.contains("No space left on device"), "\(says)")
                    #expect(says.contains("--state-dir"), "\(says)")
                    try await domain.shell("not ls -d \"$S\"/new*")
                }
            }
        }
    }
}
