import Foundation
import Testing

extension MountSuites {
    /// Extended attributes of items, between two daemons of one provider: they stayed where they were set.
    @Suite struct AttributeTravelTests {
        private func twoMachines(_ body: (MountedDomain, MountedDomain) async throws -> Void) async throws {
            var options = MountedDomain.Options(arguments: ["--poll-interval", "1s"])
            try await MountedDomain.with(options) { first in
                options.cloud = first.cloud
                try await MountedDomain.with(options) { second in try await body(first, second) }
            }
        }

        /// `is PATH NAME VALUE`, `none PATH NAME`, and of the daemon what it has sent.
        private static let shorthand = """
            is() { [ "$(getfattr --absolute-names --only-values -n "user.$2" "$M/$1" 2> /dev/null)" = "$3" ]; }
            none() { ! getfattr --absolute-names -n "user.$2" "$M/$1" > /dev/null 2>&1; }
            sent() { "$P" status --json "$M" | grep -o '"bytesUploaded":[0-9]*'; }

            """

        private func shell(_ domain: MountedDomain, _ script: String) async throws {
            try await domain.shell(Self.shorthand + script, seconds: 60)
        }

        /// What every provider has to do.
        private func travels(_ first: MountedDomain, _ second: MountedDomain) async throws {
            try await shell(first, "mkdir \"$M/d\"; echo text > \"$M/d/file\"; echo text > \"$M/plain\"")
            try await first.synchronize()
            try await shell(
                first,
                """
                before=$(sent)
                setfattr -n user.color -v red "$M/d/file"; setfattr -n user.xdg.tags -v one,two "$M/d"
                "$P" info --json "$M/d/file" | grep -q '"attributes":\\["user.color"\\]'
                sleep 2; [ "$before" = "$(sent)" ]
                """)
            try await shell(
                second,
                """
                ls -R "$M" > /dev/null; within 20 'is d/file color red'; within 20 'is d xdg.tags one,two'; none plain color
                [ "$(getfattr --absolute-names --only-values -n user.promisefs.state "$M/d/file")" = placeholder ]
                setfattr -n user.color -v blue "$M/d/file"
                """)
            try await shell(first, "within 20 'is d/file color blue'; setfattr -x user.xdg.tags \"$M/d\"")
            try await shell(second, "within 20 'none d xdg.tags'; is d/file color blue")
        }

        /// > `user.` attributes with a value of up to 8 KiB travel, wherever the provider keeps private objects
        @Test(.timeLimit(.minutes(3))) func attributesReachTheOtherMachine() async throws {
            try await twoMachines { first, second in try await travels(first, second) }
        }

        @Test(.timeLimit(.minutes(3)), .enabled(if: WebDAVServer.canRun, "there is no apache2, so there is no server to mount"))
        func attributesReachTheOtherMachineByWebDAV() async throws {
            try await WebDAVServer.with { server in
                try await MountedDomain.with(server.options()) { first in
                    try await MountedDomain.with(server.options()) { second in try await travels(first, second) }
                }
            }
        }

        @Test(.timeLimit(.minutes(3))) func attributesReachTheOtherMachineByS3() async throws {
            try await S3Server.with { server in
                try await MountedDomain.with(server.options()) { first in
                    try await MountedDomain.with(server.options()) { second in try await travels(first, second) }
                }
            }
        }

        /// An item waited to be uploaded, as it said, each time, and the attribute stayed here until the next mount.
        @Test(.timeLimit(.minutes(2))) func whatWasSetJustBeforeAnUnmountThatWaitsIsSent() async throws {
            try await MountedDomain.with(.init(arguments: ["--poll-interval", "30s", "--upload-delay", "1s"])) { domain in
                for number in 1...3 {
                    try await shell(
                        domain,
                        """
                        echo text > "$M/\(number)"; setfattr -n user.color -v red\(number) "$M/\(number)"
                        "$P" unmount --wait "$M"; grep -q "$(printf red\(number) | base64)" "$C/.promisefs/attributes/items.json"
                        """)
                    try await domain.remount()
                }
            }
        }

        @Test(.timeLimit(.minutes(3))) func theyGoWithTheirItem() async throws {
            try await twoMachines { first, second in
                try await shell(first, "mkdir \"$M/a\"; for n in 1 2 3; do echo $n > \"$M/a/$n\"; done")
                try await first.synchronize()
                try await shell(
                    first, "for n in 1 2 3; do setfattr -n user.number -v $n \"$M/a/$n\"; done")
                try await shell(second, "ls -R \"$M\" > /dev/null; within 20 'is a/3 number 3'")
                try await shell(
                    first,
                    """
                    mv "$M/a/1" "$M/a/one"; rm "$M/a/2"; mv "$M/a" "$M/b"
                    # As GLib's programs save: what the old file has is copied to the new one.
                    cp --preserve=xattr "$M/b/3" "$M/b/.3.tmp"; echo saved > "$M/b/.3.tmp"; mv "$M/b/.3.tmp" "$M/b/3"
                    """)
                try await first.synchronize()
                try await shell(
                    second, "within 20 'is b/one number 1'; within 20 'is b/3 number 3'; within 20 'grep -q saved \"$M/b/3\"'")
                try await shell(first, "echo again > \"$M/b/2\"; is b/one number 1; is b/3 number 3; none b/2 number")
                try await first.synchronize()
                try await shell(second, "within 20 '[ -e \"$M/b/2\" ]'; sleep 2; none b/2 number")
            }
        }

        /// The provider is away meanwhile, daemons are killed: of each attribute what was set last stays.
        @Test(.timeLimit(.minutes(3))) func ofTwoThatAreSetTheLastOneStays() async throws {
            try await twoMachines { first, second in
                try await shell(first, "echo text > \"$M/file\"")
                try await first.synchronize()
                try await shell(second, "within 20 '[ -e \"$M/file\" ]'")
                for domain in [first, second] { try domain.setFaults(["offline=true"]) }
                let set = "set() { setfattr -n \"user.$1\" -v \"$2\" \"$M/file\"; }\n"
                try await shell(first, set + "set both first; set one 1; sleep 1.5")
                try await shell(second, set + "set both second; set two 2; sleep 1")
                for domain in [first, second] { try domain.setFaults([]) }
                for domain in [first, second] {
                    try await shell(
                        domain, "within 30 'is file both second'; within 20 'is file one 1'; within 20 'is file two 2'")
                }
                let daemon = try await first.status().processID
                try await shell(first, "setfattr -n user.late -v yes \"$M/file\"; kill -KILL \(daemon)")
                try await shell(second, "within 30 'is file late yes'")
            }
        }

        /// More than that stays here, and that is said.
        @Test(.timeLimit(.minutes(3))) func whatIsLargeStaysHereAndThatIsTold() async throws {
            try await twoMachines { first, second in
                try await shell(first, "echo text > \"$M/file\"")
                try await first.synchronize()
                try await shell(
                    first,
                    """
                    setfattr -n user.large -v "$(head -c 8193 /dev/zero | tr '\\0' x)" "$M/file"
                    setfattr -n user.fits -v "$(head -c 8192 /dev/zero | tr '\\0' x)" "$M/file"
                    "$P" info --json "$M/file" > "$T/said"; grep -q '"localAttributes":\\["user.large"\\]' "$T/said"
                    grep -q '"attributes":\\["user.fits"\\]' "$T/said"; "$P" info "$M/file" | grep -q 'user.large (they stay'
                    "$P" status --json "$M" | grep -q '"localAttributes":1'
                    """)
                try await shell(
                    second,
                    "within 20 '[ -e \"$M/file\" ]'; within 20 'not none file fits'; sleep 2; none file large")
            }
        }
    }
}
