import Testing

extension MountSuites {
    /// Clients of the control socket that do nothing, beside programs that open files.
    @Suite struct IdleClientTests {
        /// Each of them is a descriptor, and so is each open file of the mount.
        @Test(.timeLimit(.minutes(2))) func idleClientsTakeNoDescriptorsFromTheMount() async throws {
            var options = MountedDomain.Options()
            options.prepare = "for n in $(seq 100); do echo $n > \"$C/$n\"; done"
            try await MountedDomain.with(options, mounts: false) { domain in
                try await domain.shell("ulimit -n 256; \(domain.mountCommand)")
                try await domain.shell(
                    """
                    cat > "$T/clients.py" <<'END'
                    import os, socket, sys
                    clients = []
                    for number in range(250):
                        client = socket.socket(socket.AF_UNIX)
                        client.connect(sys.argv[1])
                        # Half of them have begun to say something.
                        if number % 2: client.send(b"GET /v1/st")
                        clients.append(client)
                    files = [os.open(f"{sys.argv[2]}/{name}", os.O_RDWR) for name in range(1, 101)]
                    for name, file in enumerate(files, 1):
                        assert os.read(file, 10) == f"{name}\\n".encode()
                        os.write(file, b"more\\n")
                    made = [os.open(f"{sys.argv[2]}/new-{name}", os.O_CREAT | os.O_RDWR) for name in range(10)]
                    print("all", len(files) + len(made))
                    END
                    [ "$(python3 "$T/clients.py" "$XDG_RUNTIME_DIR/promisefs/\(domain.domainName).sock" "$M")" = 'all 110' ]
                    "$P" status "$M" > "$T/status"; "$P" sync --wait "$M"; [ "$(cat "$C/7")" = "7
                    more" ]
                    """, seconds: 60)
            }
        }
    }
}
