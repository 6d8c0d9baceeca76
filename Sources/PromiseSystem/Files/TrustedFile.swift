import Glibc
import PromiseCore

extension FileStatus {
    /// Why others decide what is in it, as the end of a sentence; nil where only this user and root
    /// may write.
    package var strangersHand: String? {
        if owner != geteuid() && owner != 0 { return "belongs to another user (\(owner))" }
        if permissions & 0o002 != 0 { return "can be written by everybody: run chmod o-w on it" }
        // The group that a user is alone in is as good as the user.
        if permissions & 0o020 != 0, group != 0, !OwnGroup.isOne(group) {
            return "can be written by a group (\(group)): run chmod g-w on it"
        }
        return nil
    }
}

/// A file that is believed, as it says what is to be done.
package enum TrustedFile {
    case content([UInt8])
    case unreadable
    /// Why it is not believed, as the end of a sentence.
    case stranger(String)

    /// What is looked at is what is read, whoever changes names meanwhile.
    package static func read(_ path: [UInt8], countMax: Int) -> TrustedFile {
        guard
            let file = try? Descriptor.open(
                // A fifo that nobody writes to would be waited for.
                path, flags: O_RDONLY | O_NONBLOCK, label: "system.trustedFile.open"),
            let status = try? FileStatus.of(
                descriptor: file.number, label: "system.trustedFile.status")
        else { return .unreadable }
        // What is written into /dev/null nobody reads there.
        if status.kind != .characterDevice, let hand = status.strangersHand { return .stranger(hand) }
        // What somebody is about to write is waited for, as of a process substitution.
        _ = fcntl(file.number, F_SETFL, fcntl(file.number, F_GETFL) & ~O_NONBLOCK)
        return readSmallFile(file, countMax: countMax).map { .content($0) } ?? .unreadable
    }
}
