import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem
import Synchronization

/// `granted`: what was given to an application, beside the files that it makes to save it. A document
/// keeps its name here, its place in the tree and its identity, however a program saves it; it is
/// never away from its place meanwhile.
struct GrantedFolder: Sendable {
    let view: View

    private var tree: FileSystem { view.tree }
    private var index: Index { view.index }
    private var policy: any ViewPolicy { view.policy }
    private var scratch: NodeID { view.launch.folders.scratch }

    /// The document that has this name in `granted`, whether a program has put it away or not.
    func root(_ name: FileName) -> ViewRoot? {
        let root = view.roots.root(named: name, .granted)
        if root != nil { view.state.withLock { _ = $0.given.insert(name) } }
        return root
    }

    /// The document that becomes what a program makes under this name; nil where none has the name. Fails where one had it
    /// and is no more: what a program saves as it would go with the launch, and the program would believe that it is saved.
    func documentToSave(_ name: FileName) throws(Failure) -> ViewRoot? {
        guard root(name) != nil || view.state.withLock({ $0.given.contains(name) }) else { return nil }
        // What was so a moment ago would save over what has its name now.
        policy.askAnew()
        guard let root = root(name), try place(of: root) != nil else { throw Self.lost(name) }
        return root
    }

    private static func lost(_ name: FileName) -> Failure {
        Failure(.stale, "'\(name.display)' is gone, or not given any more: save it elsewhere")
    }

    func isHidden(_ name: FileName) -> Bool { view.state.withLock { $0.hidden.contains(name) } }

    /// Where it is now.
    func place(of root: ViewRoot) throws(Failure) -> Entry? {
        let entry = try index.read { transaction throws(Failure) in
            try transaction.entry(root.entry)
        }
        if let entry {
            view.state.withLock { $0.places[root.name] = TreePlace(entry.name, in: entry.parent) }
        }
        return entry
    }

    func lookup(
        _ name: FileName, caller: Caller, reply: @escaping View.Reply<LookupReply>
    ) -> ParkedRequest? {
        guard let root = root(name), !isHidden(name) else {
            return view.lookup(name, below: scratch, caller: caller, reply: reply)
        }
        return view.guarded(reply) { () throws(Failure) in
            let found = try view.entry(of: root)
            reply(.success(found.map { .found($0) } ?? .absent(lifetimeSeconds: 0)))
            return nil
        }
    }

    // MARK: Saving

    /// Only a file that may be written to is made anew, and only by a file.
    func demandSaving(
        _ document: ViewRoot, _ kind: NodeKind, _ operation: StaticString
    ) throws(Failure) {
        if document.rights < .readWrite {
            policy.refused(operation, scratch)
            throw Failure(.refused, "'\(document.name.display)' was given for reading")
        }
        if kind != .file {
            throw Failure(.notPermitted, "'\(document.name.display)' was given, and stays a file")
        }
    }

    /// Takes the name away and leaves the document where it is: the program is about to make it anew,
    /// or does not want to see it any more.
    func hide(
        _ document: ViewRoot, _ operation: StaticString, reply: @escaping View.Reply<Void>
    ) -> ParkedRequest? {
        view.guarded(reply) { () throws(Failure) in
            try demandSaving(document, .file, operation)
            let isFolder = try place(of: document).map { entry throws(Failure) in
                try tree.known(entry.node)?.kind == .folder
            }
            if isFolder == true {
                throw Failure(.isFolder, "'\(document.name.display)' is a folder")
            }
            if !view.state.withLock({ $0.hidden.insert(document.name).inserted }) {
                throw Failure(.notFound, "there is no such name")
            }
            reply(.success(()))
            return nil
        }
    }

    /// What the program has made in its scratch folder becomes the document's content, at the
    /// document's place.
    func save(
        _ name: FileName, as document: ViewRoot, _ caller: Caller,
        reply: @escaping @Sendable (Result<Void, Failure>) -> Void
    ) {
        let place: TreePlace
        do throws(Failure) {
            guard let found = try self.place(of: document) else { throw Self.lost(name) }
            place = TreePlace(found.name, in: found.parent)
        } catch {
            return reply(.failure(error))
        }
        let before = try? view.node(named: place.name, in: place.parent)
        // By a hard link in the container the application would have the document when the grant
        // has ended. Programs copy what cannot be renamed.
        var caller = view.through(caller)
        caller.onlyNames = OnlyNames(folder: scratch, entry: document.entry)
        _ = tree.rename(
            name, in: scratch, to: place.name, in: place.parent, flags: [], caller: caller
        ) { [self] result in
            if case .failure(let problem) = result, problem.code == .crossDevice {
                policy.refused("rename", scratch)
            }
            if case .success = result {
                view.state.withLock { _ = $0.hidden.remove(document.name) }
                follow(document, to: place)
                if let gone = before { view.tell(of: .gone(place, gone)) }
                view.tell(of: .appeared(place))
            }
            reply(result)
        }
    }

    /// The document has a new entry where the provider had never seen it.
    private func follow(_ document: ViewRoot, to place: TreePlace) {
        let entry = try? index.read { transaction throws(Failure) in
            try transaction.entry(in: place.parent, named: place.name)
        }
        guard let entry, entry.id != document.entry else { return }
        var successor = document
        successor.entry = entry.id
        view.state.withLock { [successor] state in
            // Saved again before the policy was told: only its last entry has the name.
            state.followed = state.followed.filter { $0.value.entry != document.entry }
            state.followed[document.entry] = successor
        }
        policy.replaced(document.entry, by: entry.id) { [weak view] in
            view?.state.withLock { _ = $0.followed.removeValue(forKey: document.entry) }
        }
    }

    func rename(
        _ name: FileName, to newName: FileName, _ flags: RenameFlags, _ caller: Caller,
        reply: @escaping View.Reply<Void>
    ) throws(Failure) -> ParkedRequest? {
        let source = isHidden(name) ? nil : root(name)
        let target = try documentToSave(newName)
        switch (source, target) {
        case (nil, nil):
            return tree.rename(
                name, in: scratch, to: newName, in: scratch, flags: flags, caller: view.through(caller),
                reply: reply)
        case (nil, .some(let document)):
            guard flags.subtracting(.noReplace).isEmpty else {
                throw Failure(.invalid, "a granted document is not exchanged")
            }
            if flags.contains(.noReplace), !isHidden(newName) {
                throw Failure(.exists, "the new name is taken")
            }
            guard let saved = try view.node(named: name, in: scratch) else {
                throw Failure(.notFound, "there is no such name")
            }
            try demandSaving(document, saved.kind, "rename")
            save(name, as: document, caller, reply: reply)
            return nil
        case (.some(let document), nil):
            guard flags.subtracting(.noReplace).isEmpty else {
                throw Failure(.invalid, "a granted document is not exchanged")
            }
            return try keepAs(newName, document, caller, reply: reply)
        case (.some, .some):
            throw Failure(.crossDevice, "a granted document does not take another one's place")
        }
    }

    /// A backup of the document: a second name of its file in the scratch folder, while its own
    /// stays where it is.
    private func keepAs(
        _ name: FileName, _ document: ViewRoot, _ caller: Caller, reply: @escaping View.Reply<Void>
    ) throws(Failure) -> ParkedRequest? {
        try demandSaving(document, .file, "rename")
        guard let place = try self.place(of: document) else {
            throw Failure(.notFound, "the document is gone")
        }
        let caller = view.through(caller)
        if try view.node(named: name, in: scratch) != nil {
            _ = tree.unlink(name, in: scratch, caller: caller) { _ in }
        }
        return tree.addName(name, in: scratch, to: place.node, caller: caller) { [self] result in
            if case .success(let entry) = result {
                tree.forget(entry.attributes.node, lookups: 1)
                view.state.withLock { _ = $0.hidden.insert(document.name) }
            }
            reply(result.map { _ in () })
        }
    }

    // MARK: Listing

    /// The lines of a folder that only the view has, after those that were seen.
    func lines(of node: ViewNode) throws(Failure) -> [(name: FileName, entry: EntryReply)] {
        var lines: [(FileName, EntryReply)] = []
        if node == .root { lines.append((View.granted, view.ownEntry(.granted))) }
        let hidden = view.state.withLock { $0.hidden }
        for root in view.roots.all(node == .root ? .top : .granted)
        where node == .root || !hidden.contains(root.name) {
            if let entry = try view.entry(of: root) { lines.append((root.name, entry)) }
        }
        return lines
    }
}

extension OnlyNames {
    func areAll(of node: NodeID, _ transaction: borrowing Transaction) throws(Failure) -> Bool {
        try transaction.entries(of: node).allSatisfy { $0.parent == folder || $0.id == entry }
    }
}
