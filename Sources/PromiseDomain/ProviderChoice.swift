import Logging
import PromiseCore
import PromiseFolder
import PromiseProvider

/// Makes the provider that a name stands for.
func makeProvider(_ name: String, logger: Logger) throws(Domain.StartFailure) -> any Provider {
    let provider: any Provider
    switch name.prefix(while: { $0 != ":" }) {
    case "folder":
        do throws(ProviderError) {
            provider = FolderProvider(path: try FolderProvider.parse(name), logger: logger)
        } catch {
            throw Domain.StartFailure(error.message, exitStatus: 2)
        }
    default:
        throw Domain.StartFailure("the provider '\(name)' is not known: this version knows 'folder:/path'", exitStatus: 2)
    }
    // A test hook outside the providers' own code: delays, failures and outages that a file describes.
    guard let faults = environment("PROMISEFS_PROVIDER_FAULTS") else { return provider }
    return FaultyProvider(provider, file: Array(faults.utf8))
}
