import Testing

extension MountSuites {
    /// What the document portal of Flatpak (xdg-document-portal) does to a file that it hands to a sandboxed program.
    @Suite struct ExportedFileTests {
        /// It keeps files by descriptors of O_PATH and opens them anew by these.
        @Test(.timeLimit(.minutes(2))) func aFileThatThePortalExportsIsNotFetched() async throws {
            try await MountedDomain.with(.init(prepare: "mkdir $C/desk; head -c 300000 /dev/urandom > $C/desk/doc")) { domain in
                try await domain.shell(
                    """
                    python3 - $M/desk $C/desk/doc << 'EOF'
                    import os, sys
                    folder = os.open(sys.argv[1], os.O_PATH | os.O_DIRECTORY)
                    file = os.open("doc", os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
                    def here(): return os.getxattr(f"/proc/self/fd/{file}", "user.promisefs.state")
                    assert os.fstat(file).st_size == 300000
                    assert os.stat("doc", dir_fd=folder).st_ino == os.fstat(file).st_ino
                    os.access(f"/proc/self/fd/{file}", os.R_OK)
                    before = here()
                    with open(f"/proc/self/fd/{file}", "rb") as again: content = again.read()
                    assert content == open(sys.argv[2], "rb").read()
                    assert before != here(), before
                    # Moved meanwhile, it is the same file.
                    os.rename(sys.argv[1] + "/doc", sys.argv[1] + "/moved")
                    assert open(f"/proc/self/fd/{file}", "rb").read() == content
                    EOF
                    [ "$("$P" status $M --json | grep -c '"bytesFetched":300000')" = 1 ]
                    """)
            }
        }

        /// It saves by a file named `.xdp-NAME-XXXXXX` beside the document, which it renames over it.
        @Test(.timeLimit(.minutes(2))) func aSaveByThePortalIsOneOfTheDocument() async throws {
            try await MountedDomain.with(.init(prepare: "mkdir $C/desk; echo one > $C/desk/doc.odt")) { domain in
                try await domain.shell(
                    """
                    cd $M/desk; id() { getfattr -n user.promisefs.identifier --only-values doc.odt; }; i=$(id)
                    for n in 1 2 3; do
                        echo $n > .xdp-doc.odt-a1B2c$n; sleep 0.4; [ ! -e $C/desk/.xdp-doc.odt-a1B2c$n ]
                        mv .xdp-doc.odt-a1B2c$n doc.odt; [ "$(id)" = "$i" ]
                    done
                    "$P" sync --wait $M; [ "$(cat $C/desk/doc.odt)" = 3 ]; [ "$(ls -A $C/desk)" = doc.odt ]
                    """)
            }
        }
    }
}
