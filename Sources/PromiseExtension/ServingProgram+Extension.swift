import PromiseSystem

extension ServingProgram {
    /// What an extension's program finds the path of its socket under.
    private static let socketVariable = "PROMISEFS_EXTENSION_SOCKET"

    /// One that is to listen at a socket whose path its environment tells.
    init(program: String, arguments: [String], socket: [UInt8], shortName: String) {
        let name = Array("\(ServingProgram.socketVariable)=".utf8)
        let variable = name + socket
        self.init(
            path: Array(program.utf8), arguments: arguments.map { Array($0.utf8) }, kind: "an extension", shortName: shortName,
            title: "the extension '\(shortName)'", record: socket + Array(".session".utf8), mark: variable,
            environment: { words in
                // One that ended may have left it.
                _ = try? unlink(socket, label: "extension.socket.remove")
                return words.filter { !$0.starts(with: name) } + [variable]
            },
            listens: { PeerCheck.canConnect(socket) })
    }
}
