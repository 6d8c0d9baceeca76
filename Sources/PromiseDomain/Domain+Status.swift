import Glibc
import PromiseCore
import PromiseFilesystem
import PromiseIndex
import PromiseMount
import PromiseProvider
import PromiseSync
import PromiseSystem

/// The state of the whole.
extension Domain {
    package func status() async -> DomainStatus {
        refreshQuota()
        let counts = try? index.read { transaction throws(Failure) in try transaction.counts() }
        let quota = filesystem.knownQuota
        let transport = session.transport
        var status = DomainStatus(
            name: configuration.name, provider: provider.name,
            capabilities: provider.capabilities.nameList,
            mountPoint: configuration.mountPoint, stateFolder: configuration.stateFolder,
            processID: getpid(),
            connection: .online, connectionMessage: nil, transport: transport?.name ?? "device",
            transportMessage: transport?.message, requests: session.requestCounts,
            hasPassthrough: filesystem.hasPassthrough,
            passthroughMessage: filesystem.passthroughProblem, isReadOnly: configuration.isReadOnly,
            nodes: counts?.nodes ?? 0,
            placeholders: counts?.placeholders ?? 0, pending: counts?.pending ?? 0,
            failing: counts?.failing ?? 0,
            uploading: engine.uploadingCount, downloading: engine.hydrator.runningCount,
            bytesFetched: engine.hydrator.bytesFetched,
            bytesUploaded: engine.bytesUploaded, cacheBytes: (counts?.localBytes ?? 0).plus(counts?.removedBytes ?? 0),
            cacheLimit: engine.cacheLimit,
            quotaTotal: quota?.total, quotaAvailable: quota?.available,
            openFiles: filesystem.openCount)
        status.kernelNodes = filesystem.kernelNodeCount
        status.countApart(in: index, engine)
        if let holder {
            status.isSupervised = holder.isAlive
            status.outlivesDaemon = holder.isAlive && session.outlivesDaemon
            status.holderID = holder.processID
            status.restarts = holder.restarts
            status.lastEnd = holder.lastEnd
        }
        status.limitations = provider.limitations
        status.configurationProblem = configuration.problem
        status.countRecords(keyValues, services)
        status.transfers = engine.hydrator.transfers.counts
        switch engine.connection {
        case .online: break
        case .connecting:
            status.connection = .offline
            status.connectionMessage = "the provider has not answered yet"
        case .offline(let message):
            (status.connection, status.connectionMessage) = (.offline, message)
        case .failing(let message):
            (status.connection, status.connectionMessage) = (.failing, message)
        }
        (status.connectionSince, status.nextTry) = engine.connectionTimes
        status.pausedSince = engine.pausedSince
        status.lineRates = engine.limits.line
        status.silentSince = engine.uploadProgress.silentSince()
        return status
    }
}
