import PromiseCore
import PromiseWire

/// What a document is in memory: made of a file's bytes, and made into them.
public protocol DocumentContents: Sendable {
    /// Throws when the bytes are no such document; the document is not opened then.
    init(bytes: [UInt8]) throws
    /// Called for every save, on the document's actor.
    func bytes() throws -> [UInt8]
}

/// A document of an application, as UIDocument: read and written with coordination, saved by itself some time after an edit, and
/// a presenter that saves before others read, lets go before they write, and follows what becomes of its file.
///
///     let note = Document(location, client: client, contents: Note())
///     try await note.open()
///     try await note.edit { $0.lines.append("buy milk") }
///     try await note.close()
///
/// An actor: it may be used from any task, and its contents are only changed by `edit`. Files are read and written on threads of
/// their own. A save replaces the file by a complete one that is on the disk; identifier, tags and bookmarks stay. What throws an
/// error that is not the contents' own throws `PromiseError`. Where the contents are `PackageContents` the file is a folder,
/// which is read, written, claimed and in conflict as one.
public actor Document<Contents: DocumentContents> {
    /// As UIDocument.State. Empty: open, and everything is normal.
    public struct State: OptionSet, Hashable, Sendable {
        public let rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }
        /// Not opened yet, closed, or the file has gone.
        public static var closed: State { State(rawValue: 1) }
        /// There are unresolved versions: see `FileVersions`.
        public static var inConflict: State { State(rawValue: 2) }
        /// The last save failed, or somebody else changed the file while there were edits: `lastError` says why. What was edited
        /// is still here.
        public static var savingError: State { State(rawValue: 4) }
        /// Somebody else writes just now, or the file is being read: `edit` throws.
        public static var editingDisabled: State { State(rawValue: 8) }
    }

    public enum SaveOperation: Sendable {
        /// There must be no file yet. Opens the document.
        case creating
        /// The file must be as it was when it was read or saved last.
        case overwriting
        /// Whatever others have written goes.
        case overwritingChangesOfOthers
    }

    /// As UIDocument.ChangeKind.
    public enum ChangeKind: Sendable { case done, undone, redone, cleared }

    public nonisolated let client: PromiseClient
    /// What claims and the presenter of this document have in common. Claims of the same purpose do not wait for it.
    public nonisolated let purpose: String
    /// Every state after the present one; of one reader.
    public nonisolated let stateChanges: AsyncStream<State>

    public internal(set) var location: Location
    public internal(set) var contents: Contents
    public internal(set) var state: State = .closed {
        didSet { if state != oldValue { stateContinuation.yield(state) } }
    }
    /// How far opening, reading again or saving has come; nil: nothing is under way.
    public nonisolated var progress: DocumentProgress? { keeper.now }
    /// Every step of it, and nil at the end of each; of one reader.
    public nonisolated var progressSteps: AsyncStream<DocumentProgress?> { keeper.steps }
    /// Somebody else may write the file.
    var isLent = false { didSet { showWhetherEditable() } }
    /// What is edited while the file is being read would go with what was shown before.
    private var isReading = false { didSet { showWhetherEditable() } }
    /// Of the last save, autosave or reading again that failed.
    public internal(set) var lastError: (any Error)?
    public var hasUnsavedChanges: Bool { editCount != savedEditCount }

    private let keeper = ProgressKeeper()
    private let stateContinuation: AsyncStream<State>.Continuation
    private let autosaveDelay: Duration
    /// Grows with every edit, undo and redo: each leaves other contents.
    private var editCount = 0
    /// What it was for the contents that the file has.
    private var savedEditCount = 0
    var autosave: Task<Void, Never>?
    /// Of saves by itself, since the last one that was done.
    var failedCount = 0
    /// What others have written could not be read yet, so often.
    private var (rereading, unreadCount): (Task<Void, Never>?, Int) = (nil, 0)
    var presenting: Task<Void, Never>?
    /// Which item it is, whatever it is called: what comes to its place after it is another document.
    var item: Int64?
    /// The file as it was read or written last.
    private var stamp: DocumentStamp?
    private var isBusy = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    /// Nothing is read yet. `contents` is what a new document has. `autosaveDelay`: from the first edit that is not saved.
    public init(
        _ location: Location, client: PromiseClient, contents: Contents, autosaveDelay: Duration = .seconds(5),
        purpose: String? = nil
    ) {
        self.location = location
        self.client = client
        self.contents = contents
        self.autosaveDelay = autosaveDelay
        self.purpose = purpose ?? "document \(UInt64.random(in: 0 ... .max))"
        (stateChanges, stateContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(64))
    }

    deinit {
        autosave?.cancel()
        rereading?.cancel()
        presenting?.cancel()
        stateContinuation.finish()
        keeper.finish()
    }

    // MARK: - Opening and closing

    /// Reads the file, whose content is fetched where it is not here. From now on the document is a presenter.
    public func open() async throws {
        guard state.contains(.closed) else { return }
        item = nil
        try await followLinks()
        do {
            try await beginPresenting()
            try await load()
            state.remove(.closed)
            try await refreshConflicts()
        } catch {
            endPresenting()
            state.insert(.closed)
            throw error
        }
    }

    /// Saves what is not saved. When that fails the document stays open.
    public func close() async throws {
        // What is edited while that is written is saved, too.
        while !state.contains(.closed), hasUnsavedChanges { try await save() }
        if !state.contains(.closed) { abandon() }
    }

    /// Closes without saving; what was edited stays in `contents`.
    public func abandon() {
        autosave?.cancel()
        rereading?.cancel()
        (autosave, rereading, unreadCount) = (nil, nil, 0)
        endPresenting()
        state.insert(.closed)
        isLent = false
    }

    /// A document that is being opened is closed, and nothing else.
    private func showWhetherEditable() {
        if isLent || isReading && !state.contains(.closed) {
            state.insert(.editingDisabled)
        } else {
            state.remove(.editingDisabled)
        }
    }

    // MARK: - Editing

    /// Changes the contents, which counts as one change. Throws while the document is closed, somebody else writes, or it is
    /// being read.
    public func edit<Value: Sendable>(_ body: @Sendable (inout Contents) throws -> Value) throws -> Value {
        guard state.isDisjoint(with: [.closed, .editingDisabled]) else {
            let why =
                state.contains(.closed)
                ? "it is closed" : isReading ? "it is being read" : "somebody else writes it just now"
            throw PromiseError(.local, "\(escapedForDisplay(location.path)) cannot be edited: \(why)", exitStatus: 1)
        }
        let value = try body(&contents)
        updateChangeCount(.done)
        return value
    }

    /// For an application that undoes and redoes edits. What was undone is saved as an edit is: a
    /// save may have come between the edit and its undo. `cleared`: the file has the contents.
    public func updateChangeCount(_ kind: ChangeKind) {
        editCount += 1
        if kind == .cleared { savedEditCount = editCount }
        if hasUnsavedChanges { saveLater() }
    }

    /// A save that failed is tried again, less and less often, until it is done, unless somebody else has changed the file:
    /// what is to become of that the application says.
    private func saveByItself() async {
        autosave = nil
        guard hasUnsavedChanges, !state.contains(.closed), !isOvertaken else { return }
        do {
            try await save()
            failedCount = 0
        } catch {
            failedCount += 1
        }
        if hasUnsavedChanges, !state.contains(.closed), !isOvertaken { saveLater() }
    }

    /// Somebody else has changed the file. One that is missing comes back, or is told to be gone.
    private var isOvertaken: Bool {
        guard let error = lastError as? PromiseError else { return false }
        return state.contains(.savingError) && error.exitStatus == 6 && !error.isMissing
    }

    func saveLater() {
        guard autosave == nil else { return }
        let delay = min(autosaveDelay * (1 << min(failedCount, 10)), max(autosaveDelay, .seconds(60)))
        autosave = Task { [weak self] in
            try? await Task.sleep(for: delay)
            if !Task.isCancelled { await self?.saveByItself() }
        }
    }

    // MARK: - Saving and reverting

    /// Writes the contents as they are now, when nobody else reads or writes the file. Throws `PromiseError` of status 6 when
    /// somebody else has changed it since it was read: then `revert`, or save with `overwritingChangesOfOthers`.
    public func save(_ operation: SaveOperation = .overwriting) async throws {
        try await alone { () async throws in
            let saved = editCount
            do {
                stamp = try await writeWhereItIs(try contents.data(), operation)
            } catch {
                lastError = error
                state.insert(.savingError)
                throw error
            }
            // What was edited meanwhile is not saved.
            savedEditCount = max(savedEditCount, saved)
            state.remove(.savingError)
        }
        if operation == .creating, state.contains(.closed) {
            // Also where another file was there before.
            item = nil
            try await beginPresenting()
            state.remove(.closed)
        }
    }

    /// Forgets what was edited and reads the file again.
    public func revert() async throws {
        try await load()
        state.remove(.savingError)
        try await refreshConflicts()
    }

    /// Once more where it was only moved: its presenter is not told of that while it saves.
    private func writeWhereItIs(
        _ data: DocumentData, _ operation: SaveOperation
    ) async throws -> DocumentStamp {
        do { return try await write(data, operation) } catch {
            guard operation == .overwriting, (error as? PromiseError)?.exitStatus == 6,
                let stamp, await findAgain() == stamp
            else { throw error }
            return try await write(data, operation)
        }
    }

    private func write(_ data: DocumentData, _ operation: SaveOperation) async throws -> DocumentStamp {
        let progress = keeper.counting(.writing)
        defer { keeper.set(nil) }
        let coordinator = FileCoordinator(client, purpose: purpose)
        if operation == .creating {
            let place = DocumentPlace(path: location.absolutePath, isPackage: Contents.isPackage)
            // A claim on the place: nobody else makes something there meanwhile.
            return try await coordinator.coordinate([.writing(location.path)]) { _ in
                try await DocumentFile.onThread { () throws(PromiseError) in
                    try place.write(data, isNew: true, lastLook: {}, progress)
                }
            }
        }
        keeper.set(DocumentProgress(stage: .waiting, completed: 0, total: 0))
        let (known, location, item) = (operation == .overwriting ? stamp : nil, location, item)
        let claim = HeldClaim()
        return try await coordinator.coordinate([.writing(location.path)], lost: { claim.end() }) { access in
            let file = try Document.file(granted: access, item, location)
            return try await DocumentFile.onThread { () throws(PromiseError) in
                // Also right before the file is replaced: when the daemon was, the next one let others write meanwhile.
                try claim.look(at: file, known)
                return try file.write(
                    data, isNew: false, lastLook: { () throws(PromiseError) in try claim.look(at: file, known) }, progress)
            }
        }
    }

    /// A link stands for what it leads to, as far as that is in the same mount: it is presented, and saved, and the link stays.
    private func followLinks() async throws {
        let here = location
        let found = try await DocumentFile.onThread { () throws(PromiseError) -> Location? in
            guard let target = realPath(here.absolutePath), target != here.absolutePath else { return nil }
            return try? Location.of(target, in: try MountTable.current())
        }
        if let found, found.mount.isOfSameDomain(as: here.mount) { location = found }
    }

    private func load() async throws {
        try await alone { () async throws in
            let (coordinator, location, item) = (FileCoordinator(client, purpose: purpose), location, item)
            let progress = keeper.counting(.reading)
            keeper.set(DocumentProgress(stage: .waiting, completed: 0, total: 0))
            isReading = true
            defer {
                isReading = false
                keeper.set(nil)
            }
            let (data, read) = try await coordinator.coordinate([.reading(location.path)]) { access in
                let file = try Document.file(granted: access, item, location)
                return try await DocumentFile.onThread { () throws(PromiseError) in try file.read(progress) }
            }
            contents = try Contents(data: data)
            stamp = read
            editCount += 1
            savedEditCount = editCount
        }
    }

    /// Where the item is when a claim is granted, whatever was moved meanwhile. Throws when another one has its place.
    private static func file(
        granted access: GrantedClaimDocument, _ item: Int64?, _ location: Location
    ) throws(PromiseError) -> DocumentPlace {
        if let item, let found = access.items.first?.id, found != item {
            let shown = escapedForDisplay(location.absolutePath)
            throw PromiseError.missing("\(shown) is another document now")
        }
        let path = access.items.first.flatMap { PercentCoding.decode($0.pathBytes[...]) }
        let absolute = path.flatMap { location.absolutePath(of: Array($0.drop { $0 == 0x2F })) }
        return DocumentPlace(path: absolute ?? location.absolutePath, isPackage: Contents.isPackage)
    }

    /// Reads the file again when somebody else has changed it. Edits are not given up for that.
    func follow() async {
        await waitForSave()
        guard let now = await stampNow(), now != stamp, !isBusy, !state.contains(.closed)
        else { return }
        if hasUnsavedChanges {
            let shown = escapedForDisplay(location.absolutePath)
            lastError = PromiseError(
                .local, "\(shown) was changed by somebody else while it was edited here", exitStatus: 6)
            state.insert(.savingError)
            return
        }
        do {
            try await load()
            unreadCount = 0
        } catch {
            lastError = error
            followLater()
        }
    }

    /// Nobody says once more that others have written: less and less often, as a save is.
    private func followLater() {
        guard rereading == nil, !state.contains(.closed) else { return }
        let delay = Duration.seconds(min(2 << min(unreadCount, 5), 60))
        unreadCount += 1
        rereading = Task { [weak self] in
            try? await Task.sleep(for: delay)
            if !Task.isCancelled { await self?.followAgain() }
        }
    }

    private func followAgain() async {
        rereading = nil
        await follow()
    }

    /// Nil where nothing is, or where it cannot be looked at.
    func stampNow() async -> DocumentStamp? {
        let file = DocumentPlace(path: location.absolutePath, isPackage: Contents.isPackage)
        let now = try? await DocumentFile.onThread { () throws(PromiseError) in try file.stamp() }
        return now ?? nil
    }

    func refreshConflicts() async throws {
        let versions = FileVersions(client)
        var isInConflict = false
        // That of any file of a package is the package's; a document that is a file has one, without a name in it.
        for file in stamp?.files.keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) ?? [] where !isInConflict {
            let path = location.path + (file.isEmpty ? [] : [0x2F] + file)
            isInConflict = try await !versions.unresolved(of: path).isEmpty
        }
        if isInConflict { state.insert(.inConflict) } else { state.remove(.inConflict) }
    }

    /// One reads or writes the file at a time: an actor's methods take turns at every `await`.
    private func alone<Value>(_ body: () async throws -> Value) async throws -> Value {
        while isBusy { await withCheckedContinuation { waiting.append($0) } }
        isBusy = true
        defer {
            isBusy = false
            let next = waiting
            waiting = []
            for continuation in next { continuation.resume() }
        }
        return try await body()
    }

    /// Returns when no save is under way.
    func waitForSave() async { while isBusy { await withCheckedContinuation { waiting.append($0) } } }
}
