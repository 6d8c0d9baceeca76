import Foundation
import PromiseWire

/// How a program inside a sandbox has documents picked: by the socket of its launch. The person is
/// asked outside.
struct SandboxPicker: Sendable {
    let view: String
    let client: PromiseClient

    static func ofThisProcess() -> SandboxPicker? {
        let variables = ProcessInfo.processInfo.environment
        guard let socket = variables["PROMISEFS_SOCKET"], let view = variables["PROMISEFS_VIEW"]
        else { return nil }
        return SandboxPicker(
            view: view, client: PromiseClient(socketPath: socket, domain: "this sandbox"))
    }

    func pick(_ picker: DocumentPicker) async throws(PromiseError) -> [DocumentPicker.Document] {
        var sources: [String] = []
        for source in picker.sources {
            guard source.hasPrefix(view + "/") else {
                throw PromiseError(.local, "\(source) is not in \(view)", exitStatus: 2)
            }
            sources.append(PercentCoding.encode(Array(source.dropFirst(view.count).utf8)))
        }
        let answer = try await client.pick(
            PickRequest(
                mode: picker.mode.rawValue, types: picker.types, multiple: picker.allowsMultiple,
                folders: picker.picksFolders, name: picker.suggestedName, sources: sources))
        return answer.picked.compactMap { picked in
            PercentCoding.decode(picked.pathBytes[...]).map {
                DocumentPicker.Document(
                    path: view + "/" + String(decoding: $0.drop { $0 == 0x2F }, as: UTF8.self))
            }
        }
    }
}
