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

        /// With as many presenters, claims and live queries as there was room for nobody got an answer any more, and `unmount`
        /// took the mount from a daemon that had work left, and said that all was well.
        @Test(.timeLimit(.minutes(2))) func asManyStreamsAsThereIsRoomForKeepNobodyFromAsking() async throws {
            var options = MountedDomain.Options()
            options.uploadDelay = "1h"
            try await MountedDomain.with(options, mounts: false) { domain in
                try await domain.shell("ulimit -n 256; \(domain.mountCommand)")
                try await domain.shell(
                    """
                    cat > "$T/streams.py" << 'END'
                    import socket, sys, time
                    clients = []
                    for number in range(60):
                        client = socket.socket(socket.AF_UNIX)
                        client.connect(sys.argv[1])
                        try:
                            client.send(b"GET /v1/availability/events HTTP/1.1\\r\\nHost: promisefs\\r\\n\\r\\n")
                        except OSError:
                            pass
                        clients.append(client)
                    print("all", flush=True)
                    time.sleep(60)
                    END
                    python3 "$T/streams.py" "$XDG_RUNTIME_DIR/promisefs/\(domain.domainName).sock" > "$T/said" & p=$!
                    within 10 '[ -s "$T/said" ]'
                    # Brief ones have ten seconds.
                    echo waits > "$M/waits"; within 30 '"$P" status "$M" > /dev/null'
                    s=0; "$P" unmount "$M" > "$T/out" 2>&1 || s=$?; [ $s = 7 ]; kill $p
                    """, seconds: 60)
            }
        }
    }
}
