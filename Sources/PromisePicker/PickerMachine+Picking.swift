import PromiseKit

// Picking: what is decided, and what comes of it.

extension PickerMachine {
    mutating func enter(_ item: PickerItem) -> [PickerAction] {
        if item.isFolder { return show(.folder(item.asFolder)) }
        if request.picksPlace {
            // As if its name had been typed.
            if request.hasName { name = item.name }
            return []
        }
        if marked.isEmpty, mayPick(item) { return pick([item]) }
        return confirm()
    }

    mutating func pick(_ items: [PickerItem]) -> [PickerAction] {
        message = nil
        return perform(items.map { request.mode == .import ? .copyOut($0) : .open($0) })
    }

    mutating func confirm() -> [PickerAction] {
        message = nil
        return request.picksPlace ? confirmPlace() : confirmDocuments()
    }

    mutating func confirmDocuments() -> [PickerAction] {
        var picked = marked
        if picked.isEmpty, let current, mayPick(current) { picked = [current] }
        if picked.isEmpty, request.picksFolders, let folder {
            picked = [PickerItem(domain: folder.domain, path: folder.path, kind: "folder")]
        }
        guard !picked.isEmpty else {
            message = request.picksFolders ? "pick a folder" : "pick a document"
            return []
        }
        return pick(picked)
    }

    mutating func confirmPlace() -> [PickerAction] {
        guard let folder else {
            message = "choose a folder for it"
            return []
        }
        if request.hasName, let problem = PickerMachine.problem(withName: name) {
            message = problem
            return []
        }
        switch request.mode {
        case .create: return perform([.create(folder, name: name)])
        case .save:
            // Said twice of the same name it is meant.
            let place = folder.child(name)
            let isConfirmed = said?.domain == folder.domain && said?.path == place
            said = PickerFolder(domain: folder.domain, path: place)
            return perform([.save(folder, name: name, isConfirmed: isConfirmed)])
        case .move:
            return perform(request.sources.map { .move($0, to: folder, as: target(of: $0)) })
        default: return perform(request.sources.map { .export($0, to: folder, as: target(of: $0)) })
        }
    }

    private func target(of source: PickerRequest.Source) -> [UInt8] {
        request.hasName ? name : source.name
    }

    mutating func perform(_ consequences: [PickerConsequence]) -> [PickerAction] {
        phase = .performing
        return [.perform(consequences)]
    }

    mutating func makeFolder(_ name: [UInt8]) -> [PickerAction] {
        guard request.picksPlace, let folder else { return [] }
        if let problem = PickerMachine.problem(withName: name) {
            message = problem
            return []
        }
        isBusy = true
        return [.makeFolder(folder, name: name)]
    }

    mutating func rename(_ item: PickerItem, _ name: [UInt8]) -> [PickerAction] {
        guard request.picksPlace, name != item.name else { return [] }
        if let problem = PickerMachine.problem(withName: name) {
            message = problem
            return []
        }
        isBusy = true
        return [.rename(item, to: name)]
    }

    /// Nil for what can be a name.
    public static func problem(withName name: [UInt8]) -> String? {
        if name.isEmpty { return "it needs a name" }
        if name.contains(0x2F) || name.contains(0) { return "a name has no '/' in it" }
        if name == Array(".".utf8) || name == Array("..".utf8) {
            return "'.' and '..' are no names"
        }
        return name.count > 255 ? "a name has at most 255 bytes" : nil
    }
}
