import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem

/// What programs have written through mappings is in the kernel's pages for half a minute, where no daemon sees it.
enum KernelPages {
    /// Of a daemon that does not answer, which the command says afterwards.
    private static let patience = Duration.seconds(10)
    /// Of its own, as such a one holds a thread.
    private static let pool = BlockingPool(name: "pages", threads: 4)

    /// The kernel gives the daemon of a mount what it has (syncfs(2)). Asked for here, as a daemon that waited for itself
    /// would wait for ever.
    static func flush(_ mount: MountEntry) async {
        let attempt = Attempt { () async -> Void in
            await pool.run { () throws(Never) in
                do throws(SystemError) {
                    let folder = try Descriptor.open(mount.mountPoint, flags: O_RDONLY | O_DIRECTORY, label: "sync.folder")
                    try synchronizeFileSystem(folder.number, label: "sync.pages")
                } catch {
                    // A mount that cannot be looked at has nothing that could be flushed.
                }
            }
        }
        _ = await attempt.outcome(within: patience)
    }
}
