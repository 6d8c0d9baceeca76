import Testing

extension MountSuites {
    /// Passwords that the desktop keeps, and the command that changes one.
    @Suite(
        .enabled(if: WebDAVServer.canRun && Machine.hasKeyring, "needs Apache and GNOME's keyring"))
    struct SecretServiceTests {
        @Test(.timeLimit(.minutes(2))) func aPasswordIsKeptByTheDesktopAndInNoFileAndNoEnvironment()
            async throws
        {
            try await WebDAVServer.with { server in
                var options = MountedDomain.Options()
                options.environment = ["U": server.address, "D": server.root]
                try await MountedDomain.with(options, mounts: false) { domain in
                    try await domain.shell(
                        "NAME=\(domain.domainName) dbus-run-session -- bash \"$W/secret-service.sh\"",
                        seconds: 100)
                }
            }
        }
    }
}
