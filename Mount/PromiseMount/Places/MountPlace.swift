import PromiseSystem

/// Where a mount is: a folder above it may be renamed while something is mounted in it, and then
/// its path is another one.
struct MountPlace {
    let number: DeviceNumber
    /// Of the mount, in /proc/self/mountinfo; bind mounts of it have numbers of their own.
    private(set) var mount: UInt32
    private(set) var path: [UInt8]

    /// Of the domain's own mount; nil when it is nowhere.
    init?(of mountPoint: [UInt8], domain: String) {
        let place = MountPoint(resuming: mountPoint, ofDomain: domain).path
        self.init(seenBy: nil) { $0.mountPoint == place && $0.type == "fuse.promisefs" }
    }

    /// Of a view, which another process has.
    init?(of view: ForeignMount) {
        let device = view.device
        self.init(seenBy: view.process) { $0.major == device.major && $0.minor == device.minor }
    }

    private init?(seenBy process: Int32?, where isIt: (MountTable.Entry) -> Bool) {
        guard let entry = try? MountTable.entries(seenBy: process).last(where: isIt) else { return nil }
        number = DeviceNumber(major: entry.major, minor: entry.minor)
        mount = entry.identifier
        path = entry.mountPoint
    }

    /// Nil when it is where it was, or nowhere.
    func moved(seenBy process: Int32?) -> MountPlace? {
        guard let entries = try? MountTable.entries(seenBy: process),
            let now = entries.first(where: { $0.identifier == mount })?.mountPoint, now != path
        else { return nil }
        var place = self
        place.path = now
        return place
    }
}
