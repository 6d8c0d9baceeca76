import Glibc
import PromiseCore
import PromiseSystem

/// Opens a page in the browser that the person uses.
enum Browser {
    /// Others see the arguments of a process: so the browser is given a
    /// file that only this user reads, which leads to the address.
    ///
    /// False when none could be started that was wanted.
    @discardableResult
    static func show(_ address: String, opens: Bool, says: Bool = true) async -> Bool {
        if says { Output.note("the page: \(address)") }
        guard opens else { return true }
        return await Blocking.run {
            guard let file = page(leadingTo: address) else { return false }
            for program in ["xdg-open", "sensible-browser"] {
                if (try? Spawn.run([program, "file://" + file].map { Array($0.utf8) })) == 0 {
                    return true
                }
            }
            Output.note("no browser could be started; open the address in one")
            return false
        }
    }

    /// The page has been shown.
    static func forget() { unlink(file) }

    private static var file: String {
        (environment("XDG_RUNTIME_DIR") ?? environment("TMPDIR") ?? "/tmp")
            + "/promisefs-page-\(getpid()).html"
    }

    private static func page(leadingTo address: String) -> String? {
        let text =
            "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url=\(address)\">\n"
        forget()
        let descriptor = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        return count == bytes.count ? file : nil
    }
}
