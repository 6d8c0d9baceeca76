import AsyncHTTPClient
import NIOCore
public import PromiseWire

extension PromiseClient {
    /// Asks the person for documents, by a picker outside of this application. Only by the socket
    /// of a launch. Ends when the person has answered; ending the task takes the question back.
    public func pick(_ request: PickRequest) async throws(PromiseError) -> PickedDocuments {
        for try await event in try await stream("POST", "picks", request) {
            guard event.name == "done" else { continue }
            if let picked = WireCoding.decode(PickedDocuments.self, from: Array(event.data.utf8)) {
                return picked
            }
            break
        }
        throw PromiseError(
            .brokenReply, "the picker ended without an answer", exitStatus: 1)
    }

    /// What applications ask a person for, or one launch: events `asked` and `withdrawn`. Only the
    /// owner may.
    public func picks(ofLaunch launch: String? = nil) async throws(PromiseError) -> ServerEvents {
        try await stream("GET", "picks" + (launch.map { "?launch=\($0)" } ?? ""))
    }

    /// False: nobody waits for it any more.
    @discardableResult
    public func answer(
        pick: UInt64, _ answer: PickAnswer
    ) async throws(PromiseError) -> Bool {
        let done: DoneDocument = try await reply(
            "POST", "picks/\(pick)/answer", answer, deadline: .seconds(30))
        return done.done
    }

    // MARK: A provider's own page

    /// One HTML document of a stranger; refused as `notFound` where the provider has none.
    public func pickerPage(mode: String) async throws(PromiseError) -> [UInt8] {
        let response = try await send(
            "GET", "picker-page?mode=\(mode)", nil, deadline: .seconds(15))
        do {
            return Array(try await response.body.collect(upTo: 1 << 21).readableBytesView)
        } catch {
            throw PromiseClient.meaning(of: error, domain: domain)
        }
    }

    /// What the page's answer means.
    public func pagePick(identifier: String) async throws(PromiseError) -> PagePick {
        let text = PercentCoding.encode(Array(identifier.utf8)).replacingSlashes()
        return try await reply("GET", "picker-page/item?identifier=\(text)", deadline: .seconds(15))
    }
}
