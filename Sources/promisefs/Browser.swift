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

    private static let (start, end) = ("promisefs-page-", ".html")

    private static var folder: String {
        environment("XDG_RUNTIME_DIR") ?? environment("TMPDIR") ?? "/tmp"
    }

    private static var file: String { "\(folder)/\(start)\(getpid())\(end)" }

    /// Of processes that were killed before their page was opened.
    private static func forgetThoseOfTheDead() {
        guard
            let folder = try? Descriptor.open(
                Array(folder.utf8), flags: O_RDONLY | O_DIRECTORY, label: "page.folder"),
            let names = try? listFolder(folder, label: "page.list")
        else { return }
        for name in names.map({ String(decoding: $0.name, as: UTF8.self) })
        where name.hasPrefix(start) && name.hasSuffix(end) {
            let number = Int32(name.dropFirst(start.count).dropLast(end.count))
            if let number, number > 0, kill(number, 0) < 0, errno == ESRCH {
                unlink("\(Browser.folder)/\(name)")
            }
        }
    }

    private static func page(leadingTo address: String) -> String? {
        let text =
            "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url=\(address)\">\n"
        forget()
        forgetThoseOfTheDead()
        let descriptor = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        return count == bytes.count ? file : nil
    }
}
