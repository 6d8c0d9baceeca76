import Glibc
import PromiseCore
import PromiseSystem

/// Changes of the settings, of the configuration and of logins, one at a time: of two who read, change
/// and write them at once one would lose what the other has written.
enum SettingsTurn {
    private static let patienceMicroseconds: UInt32 = 10_000_000
    private static let pauseMicroseconds: UInt32 = 20_000

    /// Waits for others, ten seconds at most, and runs `body`. The kernel gives the turn back when the
    /// process ends (flock(2)). Blocking; not within itself.
    static func take<Value>(
        _ body: () throws(CommandFailure) -> Value
    ) throws(CommandFailure) -> Value {
        guard let file = BaseFolders.credentials() else {
            throw CommandFailure("there is no home folder; set HOME or XDG_CONFIG_HOME")
        }
        let path = Array(file[..<(file.lastIndex(of: 0x2F) ?? 0)])
        let folder = try opened(path)
        var waited: UInt32 = 0
        while flock(folder.number, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR, waited < patienceMicroseconds else {
                throw CommandFailure(
                    "another promisefs is changing \(escapedForDisplay(path)); try again later")
            }
            usleep(pauseMicroseconds)
            waited += pauseMicroseconds
        }
        defer { flock(folder.number, LOCK_UN) }
        return try body()
    }

    /// The folder that the credentials file is in.
    private static func opened(_ path: [UInt8]) throws(CommandFailure) -> SharedDescriptor {
        do throws(SystemError) {
            try makeFolders(path, label: "settings.folder")
            return SharedDescriptor(
                try Descriptor.open(
                    path, flags: O_RDONLY | O_DIRECTORY, label: "settings.open"))
        } catch {
            throw CommandFailure("\(escapedForDisplay(path)) cannot be opened: \(error.reason)")
        }
    }
}
