import ArgumentParser
import Glibc
import PromiseCore
import PromiseKit
import PromiseSystem

/// `promisefs help TOPIC`: the documents, which are installed with the program, without a network.
enum HelpTopics {
    /// Where documents are, seen from the folder of this executable: installed, or below a checkout's `.build`.
    private static let places = ["../share/promisefs/doc", "../../../docs", "../../docs"]

    /// By topic, lower case, as `semantics`: the path.
    static func all() -> [String: [UInt8]] {
        guard let own = HelperPlace.ownFolder else { return [:] }
        for place in places {
            let folder = own + Array("/\(place)".utf8)
            var topics: [String: [UInt8]] = [:]
            for name in names(in: folder) where name.hasSuffix(".md") {
                topics[name.dropLast(3).lowercased()] = folder + Array("/\(name)".utf8)
            }
            if topics["operations"] != nil { return topics }
        }
        return [:]
    }

    /// Nil when the words are none that this answers: a command's help is the argument parser's.
    static func answer(_ arguments: [String]) -> Int32? {
        let arguments = arguments.filter { $0 != "--json" }
        guard arguments.count == 2, arguments[0] == "help", !arguments[1].hasPrefix("-") else { return nil }
        let topic = arguments[1].lowercased()
        if PromiseFS.configuration.subcommands.contains(where: { $0.configuration.commandName == topic }) { return nil }
        let topics = all()
        if topic == "topics" {
            let names = topics.keys.sorted()
            let list = names.map { $0 + "\n" }.joined()
            if Output.problemsAreJSON { Output.json(Topics(topics: names)) } else { Output.text(list) }
            return 0
        }
        guard let path = topics[topic], let text = readSmallFile(path, countMax: 4 << 20) else {
            let known = topics.isEmpty ? "no document is installed" : topics.keys.sorted().joined(separator: ", ")
            Output.problem(
                "there is no command and no topic '\(topic)'; topics are: \(known)", exitStatus: ExitStatus.usage)
            return ExitStatus.usage
        }
        let shown = String(decoding: text, as: UTF8.self)
        if Output.problemsAreJSON { Output.json(Topic(topic: topic, text: shown)) } else { Output.text(shown) }
        return 0
    }

    private struct Topics: Encodable { var topics: [String] }
    private struct Topic: Encodable {
        var topic: String
        var text: String
    }

    private static func names(in folder: [UInt8]) -> [String] {
        guard let opened = try? Descriptor.open(folder, flags: O_RDONLY | O_DIRECTORY, label: "help.folder"),
            let entries = try? listFolder(opened, label: "help.list")
        else { return [] }
        return entries.map { String(decoding: $0.name, as: UTF8.self) }
    }
}
