import PromiseExtension
import PromiseProvider
import PromiseRclone
import PromiseS3
import PromiseWebDAV

/// The name of a provider on a server or in a process, looked at before anything is started.
package struct RemoteProviderName: Sendable {
    /// In one form for one place; without secrets.
    package let text: String
    /// What a domain may be called after: the last folder, the host, or the program.
    package let component: String

    /// Blocking, for a moment, where rclone is asked which remotes it has. Throws a sentence, with exit status 2, for what names
    /// nothing or holds a password.
    package init(_ name: String) throws(Domain.StartFailure) {
        do throws(ProviderError) {
            if name.hasPrefix("extension") {
                let location = try ExtensionLocation(parsing: name)
                (text, component) = (location.name, location.shortName)
                return
            }
            if name.hasPrefix("rclone:") {
                let location = try RcloneLocation(parsing: name) { () throws(ProviderError) in
                    try RcloneProgram().remotes()
                }
                (text, component) = (location.name, location.lastName)
                return
            }
            if name.hasPrefix("s3:") {
                let location = try S3Location(parsing: name, environment: environment)
                text = location.name
                component = location.lastName
                return
            }
            let location = try WebDAVLocation(parsing: name)
            text = location.name
            component = location.lastName
        } catch {
            throw Domain.StartFailure(error.message, exitStatus: 2)
        }
    }
}
