import Glibc
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseSystem

/// Resources as items. An identifier is a place, or the number of a server that numbers its files.
/// Asks nobody.
struct WebDAVItems: Sendable {
    let resources: WebDAVResources

    func identifier(_ path: some Collection<FileName>) -> ItemIdentifier {
        if path.isEmpty { return ItemIdentifier(resources.location.identity) }
        return ItemIdentifier(
            "/" + path.map { PercentEncoding.encoded($0.bytes) }.joined(separator: "/"))
    }

    func identifier(_ resource: ResourceStatus, _ path: [FileName]) -> ItemIdentifier {
        guard let number = resource.number, !path.isEmpty, resources.traits.tellsNumbers == true
        else { return identifier(path) }
        return ItemIdentifier(number: number)
    }

    /// `parent`: as the caller calls the folder; nil: by its place. `identifier`: what the caller
    /// knows that it is called. Throws where the server does not tell what a file must have: that
    /// is unknown, and not nothing.
    func item(
        _ resource: ResourceStatus, path: [FileName], parent: ItemIdentifier?,
        identifier: ItemIdentifier? = nil
    ) throws(ProviderError) -> Item {
        if let lack = resource.lack {
            throw ProviderError(
                .permanent, "\(resources.shown(path)) cannot be shown: the server \(lack)")
        }
        let version = resource.version
        let state = resource.keptState.flatMap { KeptState($0) }
        // Another program's content is a file, whatever was here before.
        let isOurs = state?.version == version.rawValue
        let target = resource.isCollection || !isOurs ? nil : state?.target
        let kind: NodeKind = resource.isCollection ? .folder : target == nil ? .file : .link
        var metadata =
            state?.metadata
            ?? Metadata(
                mode: kind == .folder ? 0o755 : 0o644, owner: geteuid(), group: getegid(),
                modificationTime: .zero)
        var isGuess = false
        if state == nil || (!isOurs && kind != .folder) {
            let time = resource.lastModified.flatMap { HTTPDate.timestamp($0) }
            // A file without a time is as old as we know it.
            isGuess = time == nil && kind != .folder
            metadata.modificationTime = time ?? (isGuess ? resources.clock.now() : .zero)
        }
        var item = Item(
            identifier: identifier ?? self.identifier(resource, path),
            parent: path.isEmpty ? nil : parent ?? folderIdentifier(path.dropLast()),
            name: path.last ?? FileName(trusted: Array("root".utf8)), kind: kind,
            size: kind == .folder
                ? 0 : target.map { UInt64($0.count) } ?? resource.contentLength ?? 0,
            metadata: metadata,
            version: version, target: target)
        item.isGuess = isGuess
        return item
    }

    private func folderIdentifier(_ path: ArraySlice<FileName>) -> ItemIdentifier {
        resources.listed.number(at: Array(path)) ?? identifier(path)
    }
}
