import PromiseCore
import PromiseKit
import PromisePicker
import PromiseSystem
import PromiseWire

/// `promisefs pick` inside the sandbox of an application: the person is asked outside of it.
struct ViewPick: Sendable {
    /// Absolute: where the application has its view.
    let view: [UInt8]
    let client: PromiseClient

    static func ofThisProcess() -> ViewPick? {
        guard let socket = environment("PROMISEFS_SOCKET"), let view = environment("PROMISEFS_VIEW")
        else { return nil }
        return ViewPick(
            view: Array(view.utf8),
            client: PromiseClient(socketPath: socket, domain: "this sandbox"))
    }

    /// A path on the view, as the socket has it.
    func path(_ path: [UInt8]) throws -> String {
        let absolute = try resolveParent(of: path)
        guard absolute.starts(with: view + [0x2F]) else {
            throw CommandFailure("\(escapedForDisplay(path)) is not in \(escapedForDisplay(view))")
        }
        return "/" + PercentCoding.encode(Array(absolute.dropFirst(view.count + 1)))
    }

    func pick(_ request: PickRequest) async throws -> [PickedDocument] {
        let answer = try await client.pick(request)
        if answer.cancelled { throw CommandFailure(nil) }
        return answer.picked.compactMap { picked in
            PercentCoding.decode(picked.pathBytes[...]).map {
                PickedDocument(path: view + [0x2F] + $0.drop { $0 == 0x2F })
            }
        }
    }
}
