import PromiseWire

// What a document does when others want to get at its file, and when they have.

extension Document {
    /// Between attempts to be a presenter again, after the daemon was replaced.
    private static var pause: Duration { .seconds(1) }

    /// Returns when the daemon knows of it: whatever happens from then on is told.
    func beginPresenting() async throws {
        endPresenting()
        let presenter = FilePresenter(client, purpose: purpose)
        let (beginnings, beginning) = AsyncThrowingStream.makeStream(of: Void.self)
        presenting = Task { [weak self] in
            while !Task.isCancelled, let path = await self?.location.path {
                do throws(PromiseError) {
                    let events = try await presenter.events(of: path, id: await self?.item)
                    await self?.isPresented(as: events.id, at: events.path)
                    beginning.finish()
                    await self?.follow()
                    await Document.listen(to: events, for: { [weak self] in self })
                } catch {
                    beginning.finish(throwing: error)
                    if error.isGone { await self?.abandon() }
                }
                try? await Task.sleep(for: Document.pause)
            }
        }
        for try await _ in beginnings {}
    }

    /// After the daemon was replaced the item may be elsewhere.
    private func isPresented(as id: Int64?, at path: [UInt8]?) {
        item = id
        // What another daemon had lent it for has ended with that daemon, and nobody says so.
        isLent = false
        if let path, path != location.path { isMoved(to: path) }
    }

    private func isMoved(to place: [UInt8]) {
        guard let absolute = location.absolutePath(of: place) else { return abandon() }
        (location.path, location.absolutePath) = (place, absolute)
        // Where it was before it could not be saved.
        guard (lastError as? PromiseError)?.isMissing == true else { return }
        lastError = nil
        state.remove(.savingError)
        autosave?.cancel()
        (autosave, failedCount) = (nil, 0)
        if hasUnsavedChanges { saveLater() }
    }

    /// Asks where the document is, and gives what is there; one that is no more is closed.
    func findAgain() async -> DocumentStamp? {
        guard let item, !state.contains(.closed) else { return nil }
        do throws(PromiseError) {
            let presenter = FilePresenter(client, purpose: purpose)
            let events = try await presenter.events(of: location.path, id: item)
            if let path = events.path, path != location.path { isMoved(to: path) }
        } catch {
            if error.isGone { abandon() }
            return nil
        }
        return state.contains(.closed) ? nil : await stampNow()
    }

    func endPresenting() {
        presenting?.cancel()
        presenting = nil
    }

    /// Until the stream ends. The document is held only while it does something.
    private static func listen(to events: FilePresenter.Events, for document: @escaping @Sendable () -> Document?) async {
        var iterator = events.makeAsyncIterator()
        while let event = try? await iterator.next() {
            guard let document = document() else { return }
            switch event {
            case .asked(let question):
                let isDone = await document.prepare(for: question.kind)
                try? await question.answer(failed: !isDone)
            case .told(let what, let about): await document.noted(what, about)
            }
        }
    }

    /// Done before the question is answered; who asks waits for that, for five seconds. False when it could not be done:
    /// then who asks does not get at the file.
    private func prepare(for question: String) async -> Bool {
        switch question {
        case "relinquishToReader": await waitForSave()
        case "relinquishToWriter":
            isLent = true
            await waitForSave()
        case "saveChanges":
            // Why is in the state.
            if hasUnsavedChanges, (try? await save()) == nil { return false }
        // Somebody means it to go, or to be another file: saving would make it again. Which of the two it was is told afterwards.
        case "accommodateSubitemDeletion" where Contents.isPackage: await waitForSave()
        case "accommodateDeletion", "accommodateSubitemDeletion":
            isLent = true
            await waitForSave()
        default: break
        }
        return true
    }

    private func noted(_ what: String, _ about: PresenterEventDocument) async {
        switch what {
        case "reacquire":
            isLent = false
            await follow()
        case "didChange": await follow()
        case "subitemDidAppear", "subitemDidChange", "subitemDidMove", "subitemDidDelete":
            if Contents.isPackage { await follow() }
        case "didMove":
            guard let text = about.pathBytes, let path = PercentCoding.decode(text[...]) else { return }
            isMoved(to: Array(path.drop { $0 == 0x2F }))
        case "didDelete": abandon()
        case "didGainVersion", "didLoseVersion", "didResolveVersion", "subitemDidGainVersion", "subitemDidLoseVersion",
            "subitemDidResolveVersion":
            // What the document's name shows may be another version now.
            await follow()
            try? await refreshConflicts()
        default: break
        }
    }
}
