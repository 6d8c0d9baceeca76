import Glibc
import PromiseCore
import PromiseIndex
import PromiseSystem

/// A domain of which there is a state folder and no daemon. Nobody can mount it while there is one
/// of these.
package final class UnmountedDomain: Sendable {
    private let state: StateFolder
    /// As it was named at the last mount; nil: there was none that succeeded.
    package let provider: String?
    /// What the provider has not been told, no more than so many being counted.
    package let pendingCount: Int

    /// Files that were kept aside, as nobody else may have what is in them; nil: there are none.
    package let keptFolder: [UInt8]?

    private static let countMax = 1_000_000

    /// Blocking. Throws a sentence when there is no domain, or a daemon has it. `isGivenUp`: it is to be forgotten,
    /// also where its index is damaged.
    package init(stateFolder: [UInt8], isGivenUp: Bool = false) throws(Domain.StartFailure) {
        // Looking must not make a state folder.
        guard
            (try? FileStatus.of(
                stateFolder + Array("/index.sqlite".utf8), label: "domain.unmounted.index")) != nil
        else {
            throw Domain.StartFailure(
                "there is no domain in '\(escapedForDisplay(stateFolder))'", exitStatus: 3)
        }
        let state = try StateFolder(stateFolder)
        self.state = state
        let kept = state.file("kept")
        let files = try? listFolder(
            Descriptor.open(kept, flags: O_RDONLY | O_DIRECTORY, label: "domain.unmounted.keptFolder"),
            label: "domain.unmounted.kept")
        // What cannot be looked into may have something.
        let isThere = (try? FileStatus.of(kept, label: "domain.unmounted.keptStatus")) != nil
        keptFolder = isThere && files?.isEmpty != true ? kept : nil
        do throws(Failure) {
            let index = try Index(path: state.file("index.sqlite"))
            defer { index.close() }
            (provider, pendingCount) = try index.read { transaction throws(Failure) in
                (
                    try transaction.setting("provider.name"),
                    try transaction.allPending(limit: UnmountedDomain.countMax).count
                )
            }
        } catch {
            guard isGivenUp, error.code == .corrupted else { throw Domain.StartFailure(error) }
            (provider, pendingCount) = (nil, 0)
        }
    }

    /// Whether a domain makes something of this name in its state folder.
    package static func isOwn(_ name: [UInt8]) -> Bool { StateFolder.isOwn(name) }

    /// What lies in the state folder and is none of a domain's: somebody gave a folder that has other things, too.
    package func strangers() throws(Domain.StartFailure) -> [[UInt8]] {
        do throws(SystemError) {
            let folder = try Descriptor.open(
                state.path, flags: O_RDONLY | O_DIRECTORY, label: "domain.unmounted.open")
            return try listFolder(folder, label: "domain.unmounted.list").map(\.name).filter { !StateFolder.isOwn($0) }
        } catch {
            throw Domain.StartFailure(
                "the state directory '\(escapedForDisplay(state.path))' cannot be listed: \(error.reason)")
        }
    }

    private static func aside(_ stateFolder: [UInt8]) -> [UInt8] { hiddenName(beside: stateFolder, "forgotten") }

    /// Removes what was put aside, also by one that was killed before it had done this. Blocking.
    package static func removeAside(of stateFolder: [UInt8]) throws(Domain.StartFailure) {
        let aside = aside(stateFolder)
        do throws(SystemError) {
            try removeTree(aside, label: "domain.forget.remove")
        } catch {
            throw Domain.StartFailure(
                "what was kept here is in '\(escapedForDisplay(aside))' and cannot be removed: \(error.reason)")
        }
    }

    /// Takes the state folder away from its name, in one step, for `removeAside`.
    package func putAside() throws(Domain.StartFailure) {
        let aside = UnmountedDomain.aside(state.path)
        do throws(SystemError) {
            try rename(state.path, to: aside, label: "domain.forget.rename")
        } catch {
            throw Domain.StartFailure(
                "the state directory '\(escapedForDisplay(state.path))' cannot be removed: \(error.reason)"
            )
        }
    }
}

/// The names of the folders in one that domains lie in.
package func domainNames(in folder: [UInt8]) -> [String] {
    let found: [(name: [UInt8], inode: UInt64)]
    do throws(SystemError) {
        let descriptor = try Descriptor.open(
            folder, flags: O_RDONLY | O_DIRECTORY, label: "domain.list.open")
        found = try listFolder(descriptor, label: "domain.list.read")
    } catch {
        return []
    }
    let names = found.compactMap { String(validating: $0.name, as: UTF8.self) }
    return names.filter { name in
        let index = folder + Array("/\(name)/index.sqlite".utf8)
        return !name.hasPrefix(".")
            && (try? FileStatus.of(index, label: "domain.list.index")) != nil
    }.sorted()
}
