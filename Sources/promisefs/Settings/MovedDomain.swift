import PromiseWire

/// What is said of a mount whose domain another machine has moved to another storage.
struct MovedDomain {
    /// As the old storage says it.
    let provider: String
    /// What takes this machine there.
    let command: String

    /// Nil while the domain is where it is mounted from.
    init?(_ status: StatusDocument) {
        guard let provider = status.movedTo,
            let mountPoint = PercentCoding.decode(status.mountPointBytes),
            let stateFolder = PercentCoding.decode(status.stateFolderBytes)
        else { return nil }
        self.provider = provider
        let (name, there) = (status.name, shellWord(Array(provider.utf8)))
        let isUsual = (try? BaseFolders.state(domain: name)) == stateFolder
        let state = isUsual ? "" : " --state-dir \(shellWord(stateFolder))"
        let place = shellWord(mountPoint)
        command = """
            promisefs unmount \(place); promisefs migrate \(name) \(there)\(state) && \
            promisefs mount --domain \(name)\(state) \(there) \(place)
            """
    }

    private var shown: String { shellWord(Array(provider.utf8)) }
    var news: String { "another machine has moved its domain to \(shown); what waits here goes along" }
    var sentence: String {
        "another machine has moved it to \(shown); this takes it there, with what waits here: \(command)"
    }
}
