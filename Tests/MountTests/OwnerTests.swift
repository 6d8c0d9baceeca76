import Foundation
import Testing

extension MountSuites {
    /// The numbers of another machine's users lock nobody out.
    @Suite(.enabled(if: getuid() == 0, "root is needed to give files away")) struct OwnerTests {
        /// > With `-o uid=` and `gid=` all items are shown as that user's
        @Test(.timeLimit(.minutes(2))) func itemsAreShownAsTheMountOptionsSay() async throws {
            var options = MountedDomain.Options()
            options.arguments = ["-o", "uid=12345,gid=54321,umask=022,fmask=0137"]
            options.prepare = """
                echo x > "$C/file"; mkdir "$C/folder"; chown 4711:4712 "$C/file"; chmod 666 "$C/file"; chmod 777 "$C/folder"
                """
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    [ "$(stat -c '%u %g %a' "$M/file")" = "12345 54321 640" ]
                    [ "$(stat -c '%u %g %a' "$M/folder")" = "12345 54321 755" ]
                    echo more >> "$M/file"; echo new > "$M/new"; [ "$(stat -c '%u %g' "$M/new")" = "12345 54321" ]
                    """)
                try await domain.synchronize()
                try await domain.shell(
                    """
                    [ "$(stat -c '%u %g %a' "$C/file")" = "4711 4712 666" ]; [ "$(stat -c %u "$C/new")" = 0 ]
                    [ "$(wc -l < "$C/file")" = 2 ]
                    """)
            }
        }
    }
}
