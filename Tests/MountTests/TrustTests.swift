import Foundation
import Testing

extension MountSuites {
    /// Who is who: real servers with Digest and with TLS, and one clear sentence for each certificate that is not believed.
    @Suite(.enabled(if: WebDAVServer.canRun, "there is no apache2, so there is no server to ask"))
    struct TrustTests {
        /// A nonce lasts for a second, so that the mount meets old ones.
        @Test(.timeLimit(.minutes(3))) func aServerWithDigestIsMounted() async throws {
            try await WebDAVServer.with(["WEBDAV_AUTHENTICATION": "Digest", "WEBDAV_NONCE_SECONDS": "1"]) { server in
                try await MountedDomain.with(server.options()) { domain in
                    try await domain.shell(
                        """
                        head -c 3M /dev/urandom > "$M/large"; echo small > "$M/small"; "$P" sync --wait "$M"; sleep 1.2
                        cmp "$M/large" "$C/large"; echo other > "$C/other"; within 20 '[ "$(cat "$M/other")" = other ]'
                        head -c 2M /dev/urandom > "$M/large"; "$P" sync --wait "$M"; cmp "$M/large" "$C/large"
                        not grep -q Basic "$D/log/error.log"
                        """)
                    let wrong = try await domain.shell(
                        "PROMISEFS_PASSWORD=wrong \"$P\" provider check \(server.provider)", status: 5)
                    #expect(wrong.errorText.contains("the server answers 401 (credentials are missing or wrong"))
                }
            }
        }

        private static let certificates = """
            cd "$D"; name=/CN=127.0.0.1; days="-days 30"
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout authority.key -out authority.pem \\
                -subj /CN=authority $days
            mkdir issued; : > index.txt; echo 01 > serial; echo subjectAltName=IP:127.0.0.1 > here
            echo subjectAltName=DNS:elsewhere.invalid > elsewhere
            printf '%s\\n' '[ca]' default_ca=c '[c]' database=index.txt serial=serial new_certs_dir=issued policy=p \\
                default_md=sha256 '[p]' commonName=supplied > ca.conf
            for which in good ended other; do
                openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $which.key -out $which.csr \\
                    -subj /CN=$which
            done
            sign() { openssl ca -batch -notext -config ca.conf -cert authority.pem -keyfile authority.key "$@"; }
            sign -in good.csr -out good.pem -extfile here $days
            sign -in other.csr -out other.pem -extfile elsewhere $days
            sign -in ended.csr -out ended.pem -extfile here -startdate 20200101000000Z -enddate 20210102000000Z
            chmod a+r *.key
            """

        /// By the system's authorities, by a file, by a fingerprint; another name, another certificate, one that has ended.
        @Test(.timeLimit(.minutes(3))) func aServerOverTLSIsBelievedForItsCertificateOnly() async throws {
            let folder = try await runShell("mktemp -d '\(Machine.folder)/trust-XXXXXX'").text
            defer { try? FileManager.default.removeItem(atPath: folder) }
            let made = try await runShell(Self.certificates, environment: ["D": folder])
            #expect(made.status == 0, "\(made.errorText)")
            for name in ["good", "ended", "other"] {
                let variables = ["WEBDAV_CERTIFICATE": "\(folder)/\(name).pem", "WEBDAV_KEY": "\(folder)/\(name).key"]
                try await WebDAVServer.with(variables) { server in
                    var options = server.options()
                    options.environment["CERTIFICATES"] = folder
                    try await MountedDomain.with(options, mounts: false) { domain in
                        switch name {
                        case "good": try await expectTrust(domain, server)
                        case "ended": try await expectDistrust(domain, server, "its certificate ended on 2021-01-02")
                        default: try await expectDistrust(domain, server, "its certificate is for another name")
                        }
                    }
                }
            }
        }

        private static let fingerprint =
            "sha256:$(openssl x509 -noout -fingerprint -sha256 -in \"$CERTIFICATES/good.pem\" | cut -d= -f2)"

        private func expectTrust(_ domain: MountedDomain, _ server: WebDAVServer) async throws {
            let check = "cd \"$CERTIFICATES\"; \"$P\" provider check \(server.provider)"
            for certificate in ["authority.pem", Self.fingerprint] {
                try await domain.shell("\(check) --certificate \(certificate)")
            }
            let sentences = [
                ("", "nobody that this machine trusts has signed its certificate; name the authority's file or,"),
                ("--certificate good.pem", "nobody in '\(folderName(domain))/good.pem' has signed its certificate;"),
                ("--certificate sha256:\(String(repeating: "ab", count: 32))", "another than --certificate names"),
            ]
            for (option, sentence) in sentences {
                let refused = try await domain.shell("\(check) \(option)", status: 5)
                #expect(refused.errorText.contains("cannot be trusted: ") && refused.errorText.contains(sentence))
                #expect(refused.errorText.split(separator: "\n").count == 1)
            }
            // A mount, named by the configuration file; and by a file that is none.
            try await domain.shell(
                """
                mkdir -p "$XDG_CONFIG_HOME/promisefs"; cd "$XDG_CONFIG_HOME/promisefs"
                printf '%s\\n' '[domains.pinned]' 'provider = "\(server.provider)"' "mountpoint = \\"$M\\"" \\
                    "state-dir = \\"$S\\"" "certificate = \\"$CERTIFICATES/authority.pem\\"" > config.toml
                "$P" mount pinned; echo text > "$M/file"; "$P" sync --wait "$M"; grep text "$C/file"
                """)
            let noCertificate = try await domain.shell("\(check) --certificate \"$C/file\"", status: 2)
            #expect(noCertificate.errorText.contains("holds no certificate in PEM"))
            let noServer = try await domain.shell("\"$P\" provider check folder:/tmp --certificate x", status: 2)
            #expect(noServer.errorText.contains("--certificate is for servers over https"))
        }

        private func folderName(_ domain: MountedDomain) -> String { domain.options.environment["CERTIFICATES"] ?? "" }

        private func expectDistrust(_ domain: MountedDomain, _ server: WebDAVServer, _ sentence: String) async throws {
            let refused = try await domain.shell(
                "\"$P\" provider check \(server.provider) --certificate \"$CERTIFICATES/authority.pem\"", status: 5)
            #expect(refused.errorText.contains("cannot be trusted: \(sentence)"))
        }
    }
}
