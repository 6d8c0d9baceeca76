import NIOHTTP1
import PromiseCore
import PromiseHTTP
import PromiseProvider

extension ServerProbe {
    /// Whether a token that a folder gives out leads to everything that is done in it then: some servers leave folders out.
    func tellsNews(_ traits: ServerTraits) async throws(ProviderError) -> Bool {
        let (folder, news) = (try await provider.uploads.place(), provider.news)
        guard try await token(Array(folder.dropLast())) != nil else { return false }
        let (file, inner) = (folder + [FileName(trusted: [0x66])], folder + [FileName(trusted: [0x67])])
        guard try await exchange(.MKCOL, folder).isSuccess else { return false }
        let found = try await unlessTrouble { () async throws(ProviderError) -> Bool? in
            for step in Step.allCases where traits.keepsProperties || step != .property {
                let token = try await token(folder)
                guard let before = token, try await !news.hasNews(before) else { return false }
                let isDone =
                    switch step {
                    case .newFile: try await put("one", file).isSuccess
                    case .content: try await put("another", file).isSuccess
                    case .newFolder: try await exchange(.MKCOL, inner).isSuccess
                    case .property: try await keepsProperty(file)
                    case .folderGone: try await exchange(.DELETE, inner).isSuccess
                    case .fileGone: try await exchange(.DELETE, file).isSuccess
                    }
                guard isDone, try await news.hasNews(before) else { return false }
            }
            return true
        }
        _ = try await exchange(.DELETE, folder)
        return found ?? false
    }

    /// What a listing would show.
    private enum Step: CaseIterable { case newFile, content, newFolder, property, folderGone, fileGone }

    private func token(_ folder: [FileName]) async throws(ProviderError) -> SyncToken? {
        let body = "<propfind xmlns=\"DAV:\"><prop><resourcetype/><sync-token/></prop></propfind>"
        let rows = try await resources.propfind(folder, isFolder: true, depth: "0", body: body)
        return rows.first?.resource.syncToken.map { SyncToken(folder: folder, text: $0) }
    }
}
