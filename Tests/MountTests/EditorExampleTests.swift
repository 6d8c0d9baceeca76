import Foundation
import Testing

extension MountSuites {
    /// `Examples/Editor`.
    @Suite struct EditorExampleTests {
        @Test(.timeLimit(.minutes(2))) func theEditorFindsItsDocumentWhateverItIsCalled() async throws {
            let options = MountedDomain.Options(arguments: ["--poll-interval", "1s", "--upload-delay", "0s"])
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    editor() { printf '%s\\n' "$@" | "$(dirname "$P")/editor" "$M"; }
                    editor 'a second' w 'a third' q | grep -qx 'editing Editor/Documents/test.txt'
                    printf 'A new document.\\nsecond\\nthird\\n' | cmp - "$M/Editor/Documents/test.txt"
                    mv "$M/Editor/Documents/test.txt" "$M/moved.txt"
                    editor 'd 2' q | grep -qx 'editing moved.txt'; printf 'A new document.\\nthird\\n' | cmp - "$M/moved.txt"
                    "$P" thumbnail "$M/moved.txt" -o "$T/picture.png"; [ -s "$T/picture.png" ]
                    # Edited elsewhere, then gone: the document of the container is made anew.
                    "$P" sync --wait "$M"; echo remote >> "$C/moved.txt"; within 5 'grep -q remote "$M/moved.txt"'
                    editor p q | grep -qx remote; rm "$M/moved.txt"; "$P" sync --wait "$M"
                    editor p q | grep -qx 'A new document.'; [ -e "$M/Editor/Documents/test.txt" ]
                    """)
            }
        }
    }
}
