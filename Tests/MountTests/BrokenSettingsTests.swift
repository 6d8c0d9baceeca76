import Foundation
import Testing

extension MountSuites {
    /// A slip of the pen in the configuration, another password or a server that is away keep nobody from what is here.
    @Suite struct BrokenSettingsTests {
        /// `settings`: writes the file, with a line among the domain's and one at the end; `works`: what is here can be read
        /// and written; `mounts WORD` by the name.
        private static func prelude(_ domain: MountedDomain, _ extra: String = "") -> String {
            """
            settings() {
                mkdir -p "$XDG_CONFIG_HOME/promisefs"
                printf '%s\\n' 'upload-delay = "100ms"' '[domains.\(domain.domainName)]' \\
                    'provider = "\(domain.options.provider ?? "folder:" + domain.cloud)"' "mountpoint = \\"$M\\"" \\
                    "state-dir = \\"$S\\"" \(extra) "${1:-}" "${2:-}" > "$XDG_CONFIG_HOME/promisefs/config.toml"
            }
            works() { [ "$(cat "$M/kept")" = kept ]; echo "$1" >> "$M/notes"; grep -q "$1" "$M/notes"; }
            mounts() {
                "$P" mount \(domain.domainName) 2> "$T/said"; works "$1"; want=$1
                within 10 '"$P" status "$M" > "$T/status"; grep -aq -- "$want" "$S/log/daemon.log" "$T/status"'
            }
            ends() { "$P" unmount "$M" || [ $? = 7 ]; }

            """
        }

        private static let slips: [(line: String, end: String, says: String)] = [
            ("cachelimit = 1", "", "no key 'domains.*cachelimit'"), ("cache-limit = 'lots'", "", "lots"),
            ("read-only = 3", "", "neither true nor false"), ("options = ['nosuch']", "", "'nosuch' is not known"),
            ("certificate = ", "", "line 6"), ("", "[domains.other", "line"), ("provider = 'x:y'", "", "provider"),
        ]

        private static func breaks(_ domain: MountedDomain) async throws {
            for slip in slips {
                // TOML takes no key twice, and so the provider is a slip of its own.
                try await domain.shell(
                    prelude(domain) + """
                        settings "\(slip.line)" "\(slip.end)"; mounts "\(slip.says)"
                        grep -q "\(slip.says)" "$T/said"; grep -q "is mounted as it was the last time" "$T/said"
                        grep -q "^  settings .*\(slip.says)" "$T/status"
                        grep -q "the settings cannot be used" "$S/log/daemon.log"; ends
                        "$P" mount --all 2> "$T/said"; works again; ends
                        """)
            }
            let refused = try await domain.shell(
                prelude(domain) + "settings; \"$P\" mount --cache-limit lots \(domain.domainName)", status: 2)
            #expect(refused.errorText.contains("lots"))
        }

        @Test(.timeLimit(.minutes(3))) func aSlipInTheConfigurationKeepsNobodyFromWhatIsHere() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                try await domain.shell(
                    Self.prelude(domain) + """
                        echo kept > "$C/kept"; settings; "$P" mount \(domain.domainName); works first; ends
                        not grep -q "last time" "$S/log/daemon.log"
                        # Beside the state folders, wherever those are.
                        [ -e "$PROMISEFS_STATE_DIR/.configured/\(domain.domainName)" ]
                        [ ! -e "$XDG_STATE_HOME/promisefs/.configured" ]
                        """)
                try await Self.breaks(domain)
                // What was never mounted is refused with the sentence, and so is what is no domain of the file.
                let unknown = try await domain.shell(
                    Self.prelude(domain) + "settings 'nosuch = 1'; \"$P\" mount other", status: 2)
                #expect(unknown.errorText.contains("other"))
                // The folder is not there, as a disk that is not plugged in.
                try await domain.shell(
                    Self.prelude(domain) + """
                        settings; mv "$C" "$C.away"; "$P" mount \(domain.domainName); works away
                        "$P" status "$M" | grep -Eq 'connection +(offline|failing)'; ends; mv "$C.away" "$C"
                        "$P" mount \(domain.domainName); "$P" sync --wait "$M"; grep -q away "$C/notes"
                        """)
            }
        }

        @Test(.timeLimit(.minutes(4)), .enabled(if: WebDAVServer.canRun, "there is no apache2, so there is no server to ask"))
        func aServerThatIsAwayOrRefusesKeepsNobodyFromWhatIsHere() async throws {
            try await WebDAVServer.with { server in
                var options = server.options()
                for name in ["PROMISEFS_USER", "PROMISEFS_PASSWORD"] { options.environment[name] = "" }
                try await MountedDomain.with(options, mounts: false) { domain in
                    try await domain.shell(
                        Self.prelude(domain) + """
                            echo kept > "$C/kept"; settings
                            says() { (umask 077; printf '%s\\n' "$@" > "$XDG_CONFIG_HOME/promisefs/credentials"); }
                            says '[\(domain.domainName)]' 'user = \(WebDAVServer.user)' 'password = \(WebDAVServer.password)'
                            "$P" mount \(domain.domainName); works first; "$P" sync --wait "$M"; ends
                            cp -p "$XDG_CONFIG_HOME/promisefs/credentials" "$T/right"
                            says '[\(domain.domainName)]' 'user = \(WebDAVServer.user)' 'password = another'; mounts 401; ends
                            says 'no entry'; mounts 'credentials, line 1'
                            cp -p "$T/right" "$XDG_CONFIG_HOME/promisefs/credentials"
                            "$P" sync --wait --timeout 30s "$M"; grep -q 'credentials, line 1' "$C/notes"; ends
                            chmod 644 "$XDG_CONFIG_HOME/promisefs/credentials"; mounts 'can be read by others'; ends
                            chmod 600 "$XDG_CONFIG_HOME/promisefs/credentials"
                            settings 'certificate = "/nowhere.pem"'; mounts certificate; ends; settings
                            "$SERVER" stop "$D"; mounts offline; ends; "$SERVER" start "$D" > "$T/started"
                            """, seconds: 120)
                    try await Self.breaks(domain)
                }
            }
        }

        @Test(.timeLimit(.minutes(4))) func aBucketThatRefusesKeepsNobodyFromWhatIsHere() async throws {
            try await S3Server.with(.ceph) { server in
                var options = server.options()
                for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] { options.environment[name] = "" }
                try await MountedDomain.with(options, mounts: false) { domain in
                    let login = "'[\(domain.domainName)]' 'user = \(S3Server.key)'"
                    try await domain.shell(
                        Self.prelude(domain) + """
                            says() { (umask 077; printf '%s\\n' "$@" > "$XDG_CONFIG_HOME/promisefs/credentials"); }
                            settings; says \(login) 'password = \(S3Server.secret)'
                            "$P" mount \(domain.domainName); echo kept > "$M/kept"; works first; "$P" sync --wait "$M"; ends
                            says \(login) 'password = another'; mounts 'connection .*failing (' ; ends
                            says \(login) 'nonsense = 1'; mounts 'credentials, line 3'
                            says \(login) 'password = \(S3Server.secret)'; "$P" sync --wait --timeout 60s "$M"; ends
                            "$SERVER" stop "$D"; mounts offline; ends
                            """, seconds: 150)
                    try await Self.breaks(domain)
                }
            }
        }
    }
}
