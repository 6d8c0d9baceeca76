import Glibc
import PromiseCore
import PromiseKit
import PromisePicker
import PromiseSystem

/// Picks by the dialog of the desktop: it knows files, this knows what they are in the domains, and
/// what becomes of them.
struct PickDialog {
    let request: PickerRequest
    let data: MountedData
    /// With whose end the dialog ends.
    let owner: Int32?

    /// Nil: cancelled.
    func pick() async throws -> [PickerConsequence]? {
        guard let paths = try await ask(words()) else { return nil }
        let places = try await Blocking.run { () throws(PromiseError) -> [Location] in
            let table = try MountTable.current()
            var found: [Location] = []
            for path in paths { found.append(try Location.of(path, in: table)) }
            return found
        }
        let items = places.map {
            PickerItem(
                domain: $0.domain, path: $0.path, kind: request.picksFolders ? "folder" : "file")
        }
        if !request.picksPlace, !request.picksFolders, !request.types.isEmpty {
            // The dialog may show more than what is asked for, and does not know of uniform types.
            for item in items where try await !data.admits(item, types: request.types) {
                let types = request.types.joined(separator: ", ")
                throw CommandFailure("'\(escapedForDisplay(item.name))' is no kind of \(types)")
            }
        }
        return items.flatMap { consequences(of: $0) }
    }

    /// After `promisefs-portal --ask`.
    private func words() throws -> [[UInt8]] {
        let hasName = request.hasName
        var words = [hasName ? "SaveFile" : "OpenFile", request.question].map {
            RawArguments.bytes(of: $0)
        }
        func add(_ option: String, _ value: [UInt8] = []) {
            words.append(Array(option.utf8) + value)
        }
        if hasName {
            add(
                "name=",
                request.suggestedName.isEmpty
                    ? request.sources.first?.name ?? [] : request.suggestedName)
        } else if request.picksFolders || request.picksPlace {
            add("directory")
        } else if request.types.allSatisfy({ $0.contains("/") || $0.hasPrefix("*.") }) {
            for type in request.types { add("type=", Array(type.utf8)) }
        }
        if request.allowsMultiple && !request.picksPlace { add("multiple") }
        let start = try request.start.map { try data.absolutePath(of: $0.path, in: $0.domain) }
        add("at=", start ?? data.firstMountPoint)
        return words
    }

    private func consequences(of item: PickerItem) -> [PickerConsequence] {
        let target = request.hasName ? item.folder : item.asFolder
        func name(_ source: PickerRequest.Source) -> [UInt8] {
            request.hasName ? item.name : source.name
        }
        switch request.mode {
        case .open: return [.open(item)]
        case .import: return [.copyOut(item)]
        case .create: return [.create(item.folder, name: item.name)]
        // The dialog has asked about what is there already.
        case .save: return [.save(item.folder, name: item.name, isConfirmed: true)]
        case .move: return request.sources.map { .move($0, to: target, as: name($0)) }
        case .export: return request.sources.map { .export($0, to: target, as: name($0)) }
        }
    }

    /// Nil: cancelled, or whoever asked has gone.
    private func ask(_ words: [[UInt8]]) async throws -> [[UInt8]]? {
        guard let helper = HelperPlace.portal() else {
            throw CommandFailure(
                "the package promisefs-portal is not installed, which speaks to the desktop",
                exitStatus: 9)
        }
        let dialog = DialogProcess()
        Interruption.ends { dialog.end() }
        let watch = owner.map { owner in
            Task { if await TemporaryImport.end(of: owner) { dialog.end() } }
        }
        defer { watch?.cancel() }
        if isatty(STDERR_FILENO) == 1 {
            Output.note("the desktop shows its dialog; Ctrl-C cancels it")
        }
        let arguments = [helper, Array("--ask".utf8)] + words
        let (output, status) = try await Blocking.run { () throws(SystemError) in
            try dialog.run(helper, arguments)
        }
        switch status {
        case 0: return output.split(separator: UInt8(0)).map { Array($0) }
        case 1: return nil
        default:
            if dialog.wasEnded { return nil }
            throw CommandFailure("the desktop has no dialog for files, or it failed", exitStatus: 9)
        }
    }
}
