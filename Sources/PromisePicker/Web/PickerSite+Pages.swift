import PromiseCore
public import PromiseKit
import PromiseWire

// Pages of providers: each in a frame of another origin, which can say one identifier.

extension PickerSite {
    private struct Pages: Encodable { var domains: [String] }
    private struct Page: Encodable { var address: String }
    private struct Problem: Encodable { var error: String }

    private struct Answer: Decodable {
        var domain: String
        var identifier: String?
    }

    /// The domains whose providers have one.
    func pages() async -> WebResponse {
        var domains: [String] = []
        for place in await data.places() where place.kind == .domain {
            guard let domain = place.folder?.domain,
                let status = try? await data.client(of: domain).status(),
                status.capabilities.contains("picker-pages")
            else { continue }
            domains.append(domain)
        }
        return .json(Pages(domains: domains))
    }

    func page(_ request: WebRequest) async -> WebResponse {
        guard let answer = WireCoding.decode(Answer.self, from: request.body) else {
            return .text("no such page", status: 400)
        }
        do throws(PromiseError) {
            let client = try data.client(of: answer.domain)
            let page = try await client.pickerPage(mode: self.request.mode.rawValue)
            return .json(Page(address: keepFrame(page)))
        } catch {
            return .json(Problem(error: escapedForTerminal(error.message)), status: 409)
        }
    }

    /// What a page has said is looked up, and then picked as if the person had done so in the list.
    func picked(_ request: WebRequest) async -> WebResponse {
        guard let answer = WireCoding.decode(Answer.self, from: request.body),
            let identifier = answer.identifier, identifier.utf8.count <= 1024
        else { return .text("no identifier", status: 400) }
        do throws(PromiseError) {
            let client = try data.client(of: answer.domain)
            let found = try await client.pagePick(identifier: identifier)
            guard let bytes = PercentCoding.decode(found.pathBytes[...]) else {
                throw PromiseError(.local, "that is no path", exitStatus: 1)
            }
            let item = PickerItem(
                domain: answer.domain, path: Array(bytes.drop { $0 == 0x2F }),
                kind: found.isFolder ? "folder" : "file")
            session.post(try self.request.event(naming: item))
            return .json(["taken": true])
        } catch {
            return .json(Problem(error: escapedForTerminal(error.message)), status: 409)
        }
    }
}

extension PickerRequest {
    /// What becomes of an item that a provider's page has named. Throws where another kind is asked
    /// for: to confirm it would be to confirm what the person has marked, or the folder that is
    /// shown, with nobody's word but the page's.
    public func event(naming item: PickerItem) throws(PromiseError) -> PickerEvent {
        let wantsFolder = picksPlace || picksFolders
        guard item.isFolder == wantsFolder else {
            let wanted = wantsFolder ? "a folder" : "a document"
            throw PromiseError(
                .local, "the page named something else: pick \(wanted)", exitStatus: 1)
        }
        // A place is confirmed by the person, who sees it with what is in it.
        return picksPlace ? .visit(item.asFolder) : .confirmItem(item)
    }
}
