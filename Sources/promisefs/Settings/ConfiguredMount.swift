import ArgumentParser
import PromiseCore
import PromiseDomain

/// The words of the command line that mount a domain of the configuration file. One whose settings
/// cannot be used is mounted with those of the last time, which it then says.
struct ConfiguredMount: Sendable {
    var words: [String]
    /// What is wrong with the settings, a sentence.
    var problem: String?
    /// What is to be kept for the next time.
    var settings: LastSettings?

    /// Whether a name stands for a domain: of a file that cannot be read those count that it named.
    /// Blocking.
    static func isConfigured(_ name: String, in file: ConfigurationFile) -> Bool {
        if file.domains[name] != nil || file.problems.contains(where: { $0.domain == name }) { return true }
        return !file.isReadable && LastSettings.read(name, of: file.path) != nil
    }

    /// The domains that can be mounted. Blocking.
    static func names(in file: ConfigurationFile) -> [String] {
        let named = file.domains.filter { $0.value.mountPoint != nil || file.problem(of: $0.key) != nil }.map(\.key)
        let last = file.isReadable ? [] : LastSettings.names(of: file.path)
        return Set(named + last).sorted()
    }

    /// `given` are the options that the user wrote, which win. Blocking.
    init(
        _ name: String, in file: ConfigurationFile, given: [String], at place: String? = nil
    ) throws(CommandFailure) {
        do throws(CommandFailure) {
            if let problem = file.problem(of: name) { throw problem }
            let domain = file.whole(file.domains[name] ?? ConfigurationFile.Domain())
            words = try file.words(for: name, domain, given: given, at: place)
            try ConfiguredMount.check(words, file)
            settings = LastSettings(name: name, configuration: file.path, domain: domain)
        } catch {
            guard let last = LastSettings.read(name, of: file.path) else { throw error }
            words = try file.words(for: name, last.domain, given: given, at: place)
            guard (try? ConfiguredMount.check(words, file)) != nil else { throw error }
            problem = "\(error.message ?? ""); '\(name)' is mounted as it was the last time"
        }
    }

    /// All that can be known to be wrong before something is mounted.
    private static func check(_ words: [String], _ file: ConfigurationFile) throws(CommandFailure) {
        let command: MountCommand
        do {
            command = try MountCommand.parse(words)
        } catch {
            let lines = MountCommand.message(for: error).split(separator: "\n")
            throw CommandFailure("\(file.path): \(lines.first ?? "")", exitStatus: ExitStatus.usage)
        }
        if let problem = DomainConfiguration.problem(ofMountOptions: command.options.splitMountOptions) {
            throw CommandFailure("\(file.path): \(problem)", exitStatus: ExitStatus.usage)
        }
        guard command.operands.count == 2 else { return }
        do throws(CommandFailure) {
            _ = try ProviderName(parsing: command.operands[0])
        } catch {
            throw CommandFailure("\(file.path): \(error.message ?? "")", exitStatus: error.exitStatus)
        }
    }
}
