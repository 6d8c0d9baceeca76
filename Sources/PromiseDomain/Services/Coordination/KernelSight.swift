import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseSync
import PromiseSystem

/// Lets the kernel see what the index says before somebody is told a path.
///
/// The kernel may know that a name is absent which was just made or moved there: the index has that first, and the call that
/// does it returns a moment later. Until then whoever looks meets ENOENT.
struct KernelSight {
    let index: Index
    let filesystem: FileSystem
    let clock: any TimeSource

    /// A call takes no longer from the index to the kernel.
    private static let recentTime = Duration.seconds(1)
    /// The kernel takes nothing about a folder in which a call waits for somebody.
    private static let patience = Duration.milliseconds(200)

    func settle(_ claim: GrantedClaim) async {
        let oldest = clock.now().advanced(by: .zero - KernelSight.recentTime)
        // What fails here fails for whoever asks for the paths.
        let names = try? index.read { transaction throws(Failure) in
            var names: [TreePlace] = []
            for number in claim.nodes.indices {
                guard let holder = claim.holder(number) else { continue }
                names += try recentNames(above: holder.node, since: oldest, transaction)
                if let name = holder.missing { names.append(TreePlace(name, in: holder.node)) }
            }
            return names
        }
        for name in names ?? [] { filesystem.nameMayBeStale(name.name, in: name.parent) }
        await filesystem.waitUntilKernelIsTold(within: KernelSight.patience)
    }

    /// Its own name and those of the folders above that are in folders which were changed a moment ago.
    private func recentNames(
        above node: NodeID, since oldest: Timestamp, _ transaction: borrowing Transaction
    ) throws(Failure) -> [TreePlace] {
        var names: [TreePlace] = []
        var current = node
        while let entry = try transaction.entries(of: current).first, let folder = try transaction.node(entry.parent) {
            if folder.changeTime > oldest { names.append(TreePlace(entry.name, in: entry.parent)) }
            current = entry.parent
        }
        return names
    }
}
