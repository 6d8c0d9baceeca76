import PromiseFilesystem
import PromiseMount

extension ShownOwners {
    /// By the mount options. What is wrong with those is said where the mount is made.
    init(_ configuration: DomainConfiguration) {
        var options = MountOptions(mountPoint: configuration.mountPoint, domain: configuration.name)
        for option in configuration.mountOptions { try? options.apply(option) }
        self.init(
            user: options.owner, group: options.group, fileMask: options.fileMask, folderMask: options.folderMask)
    }
}
