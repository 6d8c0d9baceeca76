import PromiseCore
import PromiseDomain
import PromiseSystem
import PromiseWire

// From the domain's values to the documents of the protocol, and from wire paths to names.

/// A path from the root of the mount, for people and for programs.
struct PathText {
    var display: String
    var bytes: String

    init(_ names: [FileName]) {
        let joined = names.isEmpty ? [UInt8(ascii: "/")] : names.flatMap { [UInt8(ascii: "/")] + $0.bytes }
        display = escapedForDisplay(joined)
        bytes = PercentCoding.encode(joined)
    }
}

/// The names of a percent-encoded path. Leading, trailing and doubled slashes mean nothing.
func names(ofWirePath text: some StringProtocol) throws(Failure) -> [FileName] {
    guard let bytes = PercentCoding.decode(text) else {
        throw Failure(.invalid, "the path '\(text)' has a '%' without two hexadecimal digits; a '%' itself is written %25")
    }
    var result: [FileName] = []
    for part in bytes.split(separator: UInt8(ascii: "/")) {
        guard part.count <= FileName.byteCountMax else {
            throw Failure(.nameTooLong, "a name in '\(escapedForDisplay(bytes))' is longer than 255 bytes")
        }
        guard let name = FileName(part) else {
            throw Failure(.invalid, "'\(escapedForDisplay(part))' is no name of an item; give paths without '.' and '..'")
        }
        result.append(name)
    }
    return result
}

extension StatusDocument {
    init(_ status: DomainStatus) {
        self.init(
            name: status.name, provider: status.provider, capabilities: status.capabilities,
            mountPoint: escapedForDisplay(status.mountPoint), mountPointBytes: PercentCoding.encode(status.mountPoint),
            stateFolder: escapedForDisplay(status.stateFolder), stateFolderBytes: PercentCoding.encode(status.stateFolder),
            processID: status.processID, connection: status.connection.rawValue,
            connectionMessage: status.connectionMessage, transport: status.transport,
            transportMessage: status.transportMessage, requests: status.requests, hasPassthrough: status.hasPassthrough,
            passthroughMessage: status.passthroughMessage, isReadOnly: status.isReadOnly, nodes: status.nodes,
            placeholders: status.placeholders, pending: status.pending, failing: status.failing, uploading: status.uploading,
            downloading: status.downloading, bytesFetched: status.bytesFetched, bytesUploaded: status.bytesUploaded,
            cacheBytes: status.cacheBytes, cacheLimit: status.cacheLimit, quotaTotal: status.quotaTotal,
            quotaAvailable: status.quotaAvailable, openFiles: status.openFiles)
        kernelNodes = status.kernelNodes
        isSupervised = status.isSupervised
        outlivesDaemon = status.outlivesDaemon
        holderID = status.holderID
        restarts = status.restarts
        lastEnd = status.lastEnd
        connectionSince = status.connectionSince.map { $0.wireText }
        pausedSince = status.pausedSince.map { $0.wireText }
        uploadLimit = status.lineRates.up
        downloadLimit = status.lineRates.down
        nextTry = status.nextTry.map { $0.wireText }
        silentSince = status.silentSince.map { $0.wireText }
        excluded = status.excluded
        unsentRecords = status.unsentRecords
        localAttributes = status.localAttributes
        conflicts = status.conflicts
        unlisted = status.unlisted
        diskAvailable = status.diskAvailable
        version = programVersion
        uptimeSeconds = ProcessAge.seconds()
        logFile = escapedForDisplay(status.stateFolder + Array("/log/daemon.log".utf8))
        limitations = status.limitations
        configurationProblem = status.configurationProblem
        movedTo = status.movedTo
        hydrations = status.transfers.ledger.lines.map {
            HydrationDocument(program: $0.program, fetches: $0.fetches, bytes: $0.bytes, refusals: $0.refusals)
        }
        sentBytes = status.transfers.sentByteCount
        transfersSince = status.transfers.since.map { $0.wireText }
    }
}

extension ItemDocument {
    init(_ item: ItemInformation) {
        let path = PathText(item.path)
        self.init(
            node: item.node.rawValue, path: path.display, pathBytes: path.bytes, kind: item.kind.wireName, size: item.size,
            localBytes: item.localBytes, mode: item.mode & 0o7777, owner: item.owner, group: item.group,
            accessTime: item.accessTime.wireText, modificationTime: item.modificationTime.wireText,
            changeTime: item.changeTime.wireText, birthTime: item.birthTime.wireText, links: item.links,
            identifier: item.identifier?.rawValue, version: item.version?.rawValue, state: item.state.rawValue,
            pin: item.pin.name, progress: item.progress, error: item.error, isConflict: item.isConflict,
            linkTarget: item.linkTarget.map { escapedForDisplay($0) },
            linkTargetBytes: item.linkTarget.map { PercentCoding.encode($0) })
        values = item.values.wire
        let names = item.localAttributes.map { escapedForDisplay($0) }
        localAttributes = names.isEmpty ? nil : names
        let shared = item.attributes.map { escapedForDisplay($0) }
        attributes = shared.isEmpty ? nil : shared
    }
}

extension PendingDocument {
    init(_ list: PendingList) {
        self.init(items: list.items.map { PendingItemDocument($0) })
        if list.moreCount > 0 { (moreCount, moreByteCount) = (list.moreCount, list.moreByteCount) }
    }
}

extension PendingItemDocument {
    init(_ work: PendingWork) {
        let path = PathText(work.path)
        self.init(
            kind: work.kind.rawValue, node: work.node?.rawValue, path: path.display, pathBytes: path.bytes,
            isRunning: work.isRunning, size: work.size, progress: work.progress, since: work.since.wireText,
            attempts: work.attempts, error: work.error)
        silentSince = work.silentSince.map { $0.wireText }
    }
}

extension ProgressDocument {
    init(_ progress: FetchProgress) {
        self.init(
            filesDone: progress.filesDone, filesTotal: progress.filesTotal, bytesDone: progress.bytesDone,
            bytesTotal: progress.bytesTotal, failures: progress.failures.map { ItemFailureDocument(path: $0.path, $0.failure) })
    }

    /// Several fetches shown as one. `tellsFailures`: at the end alone, as there may be thousands.
    init(sum parts: some Sequence<ProgressDocument>, tellsFailures: Bool) {
        self.init(filesDone: 0, filesTotal: 0, bytesDone: 0, bytesTotal: 0, failures: [])
        for part in parts {
            filesDone += part.filesDone
            filesTotal += part.filesTotal
            bytesDone = bytesDone.plus(part.bytesDone)
            bytesTotal = bytesTotal.plus(part.bytesTotal)
            if tellsFailures { failures += part.failures }
        }
    }
}

extension EvictionDocument {
    init(_ report: EvictionReport) {
        let kept = report.kept.map { item in
            let path = PathText(item.path)
            var document = KeptItemDocument(path: path.display, pathBytes: path.bytes, reason: item.reason.sentence)
            document.code = item.reason.rawValue
            document.exitStatus = item.isAsked ? item.reason.exitStatus : nil
            return document
        }
        self.init(evicted: report.evicted, bytesFreed: report.bytesFreed, kept: kept, failures: [])
    }
}

extension PinDocument {
    mutating func add(_ report: PinReport) {
        items += report.items
        failures += report.failures.map { ItemFailureDocument(path: $0.path, $0.failure) }
    }
}

extension ItemFailureDocument {
    init(path: [FileName], _ failure: Failure) {
        let text = PathText(path)
        self.init(
            path: text.display, pathBytes: text.bytes, code: failure.code.rawValue, detail: failure.message,
            exitStatus: failure.code.exitStatus)
    }
}

extension Timestamp {
    var wireText: String { TimeText.format(nanoseconds: rawValue) }
}
