import Glibc
import PromiseCore
import PromiseSystem

/// Writes what `setup` was told: a table at the end of the configuration file, the login where that is kept, and the mount
/// point. What was there stays as it is, with its comments. Blocking.
struct SetupWriter {
    private let answers: SetupAnswers

    init(_ answers: SetupAnswers) { self.answers = answers }

    /// Returns whether the password went to the Secret Service; nil when there is none.
    @discardableResult func write() throws(CommandFailure) -> Bool? {
        try SettingsTurn.take(writeInTurn)
    }

    private func writeInTurn() throws(CommandFailure) -> Bool? {
        var isInService: Bool?
        let configuration = try added(
            to: environment("PROMISEFS_CONFIG").map { Array($0.utf8) } ?? BaseFolders.configuration(), SetupWriter.table(answers))
        let isWritten = try isWritten(configuration.old, configuration.new)
        try prepareMountPoint()
        if let password = answers.password {
            let login = LoginWriter(
                domain: answers.name, user: answers.user, password: password, mayUseService: answers.mayUseService)
            isInService = try login.writeInTurn()
        }
        if !isWritten { try SetupWriter.replace(configuration.path, configuration.new) }
        return isInService
    }

    /// Whether the file has the domain as it is wanted: one that was ended before it was done goes on
    /// from there. Whatever would keep it from being mounted is said before anything is written; what is
    /// wrong with other domains does not concern it.
    func isWritten(_ old: String, _ new: String) throws(CommandFailure) -> Bool {
        let name = answers.name
        let known = ConfigurationFile(lenient: old, path: answers.configurationPath)
        if let problem = known.problem(of: name) { throw problem }
        if let entry = known.domains[name] {
            if answers.say(entry) { return true }
            throw CommandFailure(
                "\(answers.configurationPath) has a domain '\(name)' already; "
                    + "give another --name, or edit it",
                exitStatus: ExitStatus.usage)
        }
        let next = ConfigurationFile(lenient: new, path: answers.configurationPath)
        if let problem = next.problem(of: name) { throw problem }
        return false
    }

    /// What is written down and cannot be mounted would be in the way of the next attempt.
    private func prepareMountPoint() throws(CommandFailure) {
        let place = answers.mountPoint
        guard SystemMounts.answers(place) else {
            throw CommandFailure(
                "\(escapedForDisplay(place)) does not answer: a mount there hangs; "
                    + "'promisefs doctor' says more",
                exitStatus: ExitStatus.offline)
        }
        let isThere = SystemMounts.isAccessible(place, F_OK)
        do throws(SystemError) {
            try makeFolders(place, label: "setup.mountPoint")
        } catch {
            throw CommandFailure("\(escapedForDisplay(place)) cannot be made: \(error.reason)")
        }
        var status = stat()
        // The mount of a daemon that has died says nothing.
        if withCPath(place, { stat($0, &status) }) == 0, status.st_mode & S_IFMT != S_IFDIR {
            throw CommandFailure("\(escapedForDisplay(place)) is not a folder")
        }
        guard !answers.areCarriedOut else { return }
        do throws(CommandFailure) {
            let operands = [answers.provider, RawArguments.text(of: place)].compactMap { $0 }
            let plan = try MountPlan(operands: operands, domain: answers.name, stateFolder: nil)
            // Later something else may be there, or nothing: but it must be a place where that can be.
            if answers.isMounted { _ = try plan.checkPlace() } else { try plan.checkOverlap() }
        } catch {
            if !isThere { _ = withCPath(place) { rmdir($0) } }
            throw error
        }
    }

    private func added(
        to path: [UInt8]?, _ text: String
    ) throws(CommandFailure) -> (path: [UInt8], old: String, new: String) {
        guard let path else { throw CommandFailure("there is no home folder; set HOME or XDG_CONFIG_HOME") }
        let old = try SetupWriter.text(of: path)
        let gap = old.isEmpty ? "" : old.hasSuffix("\n") ? "\n" : "\n\n"
        return (path, old, old + gap + text)
    }

    /// TOML of the domain.
    static func table(_ answers: SetupAnswers) throws(CommandFailure) -> String {
        guard let place = String(validating: answers.mountPoint, as: UTF8.self) else {
            throw CommandFailure("the mount point is not UTF-8, which the configuration file is", exitStatus: ExitStatus.usage)
        }
        // A dot would make two keys of it.
        let name = answers.name.contains(".") ? quoted(answers.name) : answers.name
        var lines = ["[domains.\(name)]"]
        if let provider = answers.provider { lines.append("provider = \(quoted(provider))") }
        lines.append("mountpoint = \(quoted(place))")
        if let certificate = answers.certificate { lines.append("certificate = \(quoted(certificate))") }
        return lines.map { $0 + "\n" }.joined()
    }

    /// A basic string of TOML.
    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\" + String(scalar)
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    /// All that is in a file of settings, which is to be written anew with something more; empty where there is none.
    static func text(of path: [UInt8]) throws(CommandFailure) -> String {
        guard SystemMounts.isAccessible(path, F_OK) else { return "" }
        let countMax = 1 << 20
        var status = stat()
        // Of a pipe nothing would come, and what was cut off would be lost.
        guard withCPath(path, { stat($0, &status) }) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size <= countMax,
            let bytes = readSmallFile(path, countMax: countMax), let text = String(validating: bytes, as: UTF8.self)
        else { throw CommandFailure("\(escapedForDisplay(path)) cannot be read as text of at most 1 MiB") }
        return text
    }

    /// Readable by nobody else, and whole at every moment.
    static func replace(_ path: [UInt8], _ text: String) throws(CommandFailure) {
        // Those who keep their settings elsewhere have a link to them.
        guard case .file(let path) = NamedFile(path) else {
            throw CommandFailure("\(escapedForDisplay(path)) is no file")
        }
        let draft = path + Array(".\(getpid()).new".utf8)
        var isDone = false
        defer { if !isDone { _ = withCPath(draft) { unlink($0) } } }
        do throws(SystemError) {
            try makeFolders(Array(path[..<(path.lastIndex(of: 0x2F) ?? 0)]), label: "setup.folder")
            _ = withCPath(draft) { unlink($0) }
            let file = try Descriptor.open(draft, flags: O_WRONLY | O_CREAT | O_EXCL, mode: 0o600, label: "setup.file")
            let bytes = Array(text.utf8)
            let count = bytes.withUnsafeBytes { Glibc.write(file.number, $0.baseAddress, $0.count) }
            guard count == bytes.count, fsync(file.number) == 0 else { throw SystemError(errno: errno, label: "setup.write") }
            try rename(draft, to: path, label: "setup.rename")
            isDone = true
        } catch {
            throw CommandFailure("\(escapedForDisplay(path)) cannot be written: \(error.reason)")
        }
    }
}
