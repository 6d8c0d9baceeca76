import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem

// What lies among the private objects of a provider and is too large to be one.

extension RecordVerification {
    /// It may be anything, and all that there is of it: it is removed there when it is whole on the disk here.
    func takeAway(
        _ name: PrivateName, _ problem: String, _ objects: any PrivateObjects, _ found: inout RecordFindings
    ) async throws(ProviderError) {
        guard isRepairing else { return found.problems.append(problem) }
        do throws(ProviderError) {
            guard let (place, version) = try await keepTooLarge(name, objects) else {
                return found.problems.append("\(problem): remove it there")
            }
            let keeping = "is kept as '\(escapedForDisplay(place))'"
            do throws(ProviderError) {
                try await objects.delete(name, base: version)
                found.repaired.append("\(problem); it was removed there, and \(keeping)")
            } catch {
                // It may be gone all the same, and what is kept all that there is of it.
                found.problems.append("\(problem), \(keeping), and was not removed there: \(error.message)")
            }
        } catch {
            found.problems.append("\(problem), and cannot be taken away: \(error.message)")
        }
    }

    /// Returns where it is, on the disk, and of which version; nil when the provider does not give it.
    private func keepTooLarge(
        _ name: PrivateName, _ objects: any PrivateObjects
    ) async throws(ProviderError) -> ([UInt8], ContentVersion)? {
        let place: [UInt8]
        do throws(Failure) { place = try shelf.place(for: "provider-\(name.kind.rawValue)-\(name.name)") } catch {
            throw ProviderError(.permanent, error.message)
        }
        let file = try onDisk { () throws(SystemError) in
            SharedDescriptor(
                try Descriptor.open(place, flags: O_WRONLY | O_CREAT | O_EXCL, mode: 0o600, label: "records.large"))
        }
        do throws(ProviderError) {
            guard let version = try await objects.fetchTooLarge(name, into: FileSink(file)) else {
                try? unlink(place, label: "records.largeNone")
                return nil
            }
            try onDisk { () throws(SystemError) in
                try synchronize(file.number, dataOnly: false, label: "records.largeSync")
                let folder = try Descriptor.open(shelf.folder, flags: O_RDONLY | O_DIRECTORY, label: "records.largeFolder")
                try synchronize(folder.number, dataOnly: false, label: "records.largeName")
            }
            return (place, version)
        } catch {
            try? unlink(place, label: "records.largeFailed")
            throw error
        }
    }
}
