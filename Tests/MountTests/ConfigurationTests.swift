import Testing

extension MountSuites {
    /// Domains that are named in the configuration file, several at once, each with its own provider, state and limits.
    @Suite struct ConfigurationTests {
        @Test(.timeLimit(.minutes(2))) func namedDomainsAreMountedByTheirNamesAndAllAtOnce() async throws {
            try await MountedDomain.with(mounts: false) { domain in
                let (one, two) = (domain.domainName + "-one", domain.domainName + "-two")
                try await domain.shell(
                    """
                    mkdir -p "$C/one" "$C/two" "$T/one" "$T/two" "$XDG_CONFIG_HOME/promisefs"
                    echo first > "$C/one/file"; echo second > "$C/two/file"
                    cat > "$XDG_CONFIG_HOME/promisefs/config.toml" <<END
                    upload-delay = "100ms"
                    [domains.\(one)]
                    provider = "folder:$C/one"
                    mountpoint = "$T/one"
                    state-dir = "$S/one"
                    read-only = true
                    [domains.\(two)]
                    provider = "folder:$C/two"
                    mountpoint = "$T/two"
                    state-dir = "$S/two"
                    cache-limit = "1G"
                    END
                    "$P" mount \(one) | grep -q 'mounted \(one) on'
                    [ "$(cat "$T/one/file")" = first ]; not touch "$T/one/new"
                    "$P" mount --all | grep -q 'mounted \(two) on'
                    [ "$(cat "$T/one/file")$(cat "$T/two/file")" = firstsecond ]; echo more > "$T/two/more"
                    "$P" sync --wait "$T/two"; [ "$(cat "$C/two/more")" = more ]
                    "$P" status --json "$T/two" | grep -q '"cacheLimit":1073741824'
                    """)
                let twice = try await domain.shell("\"$P\" mount \(two)", status: 1)
                #expect(twice.errorText.contains("is mounted already"))
                try await domain.shell("\"$P\" unmount \"$T/one\"; \"$P\" unmount \"$T/two\"")
                // "the provider has no scheme; write folder:NAME" was the answer to that.
                try await domain.shell(
                    """
                    mkdir "$T/elsewhere"; "$P" mount \(two) "$T/elsewhere"; [ "$(cat "$T/elsewhere/file")" = second ]
                    "$P" unmount \(two); not mountpoint -q "$T/two"
                    """)
                let wrong = try await domain.shell(
                    "echo 'cachelimit = 1' > \"$T/wrong.toml\"; PROMISEFS_CONFIG=\"$T/wrong.toml\" \"$P\" mount \(one)",
                    status: 2)
                #expect(wrong.errorText.contains("wrong.toml: there is no key 'cachelimit'"))
            }
        }
    }
}
