import Glibc
package import Logging
import PromiseContent
import PromiseCore
package import PromiseFilesystem
import PromiseIndex
import PromiseMount
import PromiseProvider
import PromiseSync
package import PromiseSystem
import Synchronization

/// One domain: its provider, index, content, engine, filesystem and mount, wired together, and its life.
package final class Domain: Sendable {
    /// Why a domain could not start. The message is a sentence for people; `exitStatus` as the command line documents it:
    /// 1 failed, 2 usage, 4 offline, 5 refused.
    package struct StartFailure: Error, Sendable {
        package var message: String
        package var exitStatus: Int32
        package init(_ message: String, exitStatus: Int32 = 1) {
            self.message = message
            self.exitStatus = exitStatus
        }

        init(_ failure: Failure) {
            let status: Int32 =
                switch failure.code {
                case .offline, .timedOut: 4
                case .refused, .notPermitted: 5
                case .invalid: 2
                default: 1
                }
            self.init(failure.message, exitStatus: status)
        }
    }

    struct Life {
        /// Pending work that was left when the mount ended.
        var remaining: Int?
        var lastQuotaCheck: Duration?
        var isAskingForQuota = false
    }

    package let configuration: DomainConfiguration
    let provider: any Provider
    let index: Index
    let content: ContentStore
    let engine: SyncEngine
    let filesystem: FileSystem
    let session: MountSession
    let hub: QueryHub
    package let trace = RequestTrace()
    package let keyValues: Values
    package let services: DocumentServices
    package let itemServices: ItemServices
    let clock = SystemClock()
    let logger: Logger
    /// Keeps the mount while no daemon lives; nil: the mount ends with this process.
    let holder: Holder?
    /// Keeps the state folder locked for as long as the domain lives.
    private let state: StateFolder
    /// A leaf: nothing is called while it is held.
    let life = Monitor(Life())

    // MARK: Start

    /// Locks the state folder, opens the index, connects the provider, mounts or goes on with the mount that `holder` has. When
    /// this returns the mount serves requests. Throws a sentence and leaves nothing half-mounted.
    package static func start(
        _ configuration: DomainConfiguration, holder: Holder? = nil, logger: Logger
    ) async throws(StartFailure) -> Domain {
        // A daemon that was killed may take a moment to let go of it.
        let patience: Duration = (holder?.restarts ?? 0) > 0 ? .seconds(5) : .zero
        let state = try await StateFolder.lock(configuration.stateFolder, patience: patience)
        let choice = ProviderChoice(
            name: configuration.provider, domain: configuration.name, login: configuration.login,
            credentialsFile: configuration.credentialsFile, stateFolder: configuration.stateFolder,
            mayProbe: !configuration.isReadOnly, certificate: configuration.certificate, logger: logger
        )
        let provider = try choice.make(isKnown: configuration.isKnown, keptLogin: configuration.keptLogin)
        let index: Index
        let content: ContentStore
        do throws(Failure) {
            // SQLite would make it readable for everybody; names are nobody else's business.
            _ = try? Descriptor.open(state.file("index.sqlite"), flags: O_RDWR | O_CREAT, mode: 0o600, label: "domain.index")
            index = try Index(path: state.file("index.sqlite"))
            content = try ContentStore(folder: state.file("content"))
            choice.knownPlaces.know(index)
        } catch {
            throw StartFailure(error.atStart(in: configuration.stateFolder))
        }
        do throws(StartFailure) {
            let beginning = try await connect(
                provider, index, configuration, isResuming: holder?.device != nil)
            let root = beginning.root
            let reached: any Provider =
                beginning.asking.map { LateProvider(provider, asking: $0, root: root) } ?? provider
            let domain = try Domain(
                configuration, reached, index, content, root: root, state, holder, logger)
            try domain.mount(beginning)
            return domain
        } catch {
            index.close()
            throw error
        }
    }

    private init(
        _ configuration: DomainConfiguration, _ provider: any Provider, _ index: Index, _ content: ContentStore,
        root: ItemIdentifier, _ state: StateFolder, _ holder: Holder?, _ logger: Logger
    ) throws(StartFailure) {
        self.configuration = configuration
        self.provider = provider
        self.index = index
        self.content = content
        self.state = state
        self.holder = holder
        self.logger = logger
        var syncing = SyncEngine.Configuration(
            uploadDelay: configuration.uploadDelay, pollInterval: configuration.pollInterval,
            cacheLimit: configuration.cacheLimit, hostName: hostName())
        syncing.removedAge = configuration.removedAge
        engine = SyncEngine(
            index: index, content: content, provider: provider, clock: clock, rootIdentifier: root,
            configuration: syncing, logger: logger)
        var behaviour = FileSystem.Configuration(
            requestDeadline: configuration.requestDeadline, domainName: configuration.name,
            coordination: configuration.coordination)
        behaviour.nameDeadline = configuration.nameDeadline
        behaviour.references = ReferenceMemory()
        behaviour.hydrationRules = HydrationRules(own: configuration.hydrationRules)
        behaviour.owners = ShownOwners(configuration)
        behaviour.exclusions.own = IgnorePatterns(lines: configuration.ignoredPatterns)
        filesystem = FileSystem(
            index: index, content: content, engine: engine, clock: clock, configuration: behaviour,
            record: holder?.record, logger: logger)
        let audit = AuditLog(path: state.file("audit.log"))
        keyValues = Values(state.file("values"), root, provider, engine, configuration, audit, logger)
        let tree = DomainTree(
            index: index, engine: engine, filesystem: filesystem, provider: provider,
            domainName: configuration.name, account: root,
            patience: configuration.requestDeadline, isReadOnly: configuration.isReadOnly)
        services = DocumentServices(tree, state, configuration, audit, logger)
        hub = QueryHub(
            domainName: configuration.name, index: index, filesystem: filesystem, engine: engine,
            services.containers, logger: logger)
        itemServices = ItemServices(
            hub, content, state, services, keyValues, configuration, clock, logger)
        do throws(Failure) {
            var options = MountOptions(mountPoint: configuration.mountPoint, domain: configuration.name)
            for option in configuration.mountOptions { try options.apply(option) }
            if configuration.isReadOnly { options.isReadOnly = true }
            options.wantsPassthrough = configuration.allowsPassthrough
            options.backingHelper = configuration.backingHelper.map { BackingHelper(path: $0, store: state.file("content")) }
            options.echoProgram = configuration.isReadOnly || options.isReadOnly ? nil : configuration.echoProgram
            options.lockProgram = configuration.lockProgram
            options.wantsRings = configuration.wantsRings
            options.wantsLatencyLimit = configuration.allowsLatencyLimit
            session = MountSession(
                filesystem: MainMount(filesystem), options: options, holder: holder, trace: trace, logger: logger)
        } catch {
            throw StartFailure(error)
        }
    }

    /// How far a mount has come with its provider when it begins to serve.
    private struct Beginning {
        var root: ItemIdentifier
        var isConnected = false
        /// The provider has not answered yet.
        var asking: Attempt<Result<Item, ProviderError>>?
    }

    /// A provider that answers at once is there when the mount is; of one that takes longer, what
    /// is known is shown meanwhile.
    private static let patience = Duration.seconds(1)
    /// Programs wait on a mount that is gone on with.
    private static let patienceWhenResuming = Duration.milliseconds(500)

    /// Asks the provider for its root. Of a known domain nobody waits for that longer than a
    /// moment, as a provider may be silent, or a folder's disk hang; nothing can be shown of one
    /// that is not known.
    private static func connect(
        _ provider: any Provider, _ index: Index, _ configuration: DomainConfiguration, isResuming: Bool
    ) async throws(StartFailure) -> Beginning {
        let known: ItemIdentifier?
        do throws(Failure) {
            known = try index.read { transaction throws(Failure) in
                try transaction.setting("root.identifier").map { ItemIdentifier($0) }
            }
        } catch {
            throw StartFailure(error)
        }
        let asking = Attempt.ofProvider { () throws(ProviderError) in
            try await provider.greet()
            return try await provider.root()
        }
        let most = configuration.requestDeadline
        let limit = known == nil ? most : min(isResuming ? patienceWhenResuming : patience, most)
        guard let answer = await asking.outcome(within: limit) else {
            guard let known else {
                asking.cancel()
                throw StartFailure("the provider did not answer", exitStatus: 4)
            }
            return Beginning(root: known, asking: asking)
        }
        switch answer {
        case .success(let root):
            do throws(Failure) {
                try adopt(root, index, provider)
            } catch {
                throw StartFailure(error.atStart(in: configuration.stateFolder))
            }
            return Beginning(root: root.identifier, isConnected: true)
        case .failure(let problem):
            // Offline is normal, a password is changed, a server is set up anew: what is known is shown.
            guard let known else { throw StartFailure(problem.message, exitStatus: exitStatus(of: problem)) }
            return Beginning(root: known, asking: asking)
        }
    }

    private static func exitStatus(of problem: ProviderError) -> Int32 {
        switch problem.code {
        case .offline, .retry, .retryAfter, .cancelled: 4
        case .authenticate, .refused: 5
        default: 1
        }
    }

    /// Stores the root on the first mount; afterwards makes sure that it is still the same storage.
    private static func adopt(_ root: Item, _ index: Index, _ provider: any Provider) throws(Failure) {
        try index.write { transaction throws(Failure) in
            if let known = try transaction.setting("root.identifier") {
                guard known == root.identifier.rawValue else {
                    throw Failure(
                        .exists,
                        "'\(provider.name)' is not the storage this state directory was made for, and taking it for that would "
                            + "look like everything had been deleted: choose another --state-dir or --domain"
                    )
                }
                if try transaction.setting("provider.name") != provider.name {
                    try transaction.setSetting("provider.name", provider.name)
                }
                return
            }
            try transaction.setSetting("root.identifier", root.identifier.rawValue)
            try transaction.setSetting("provider.name", provider.name)
            try transaction.setSynced(SyncedItem(item: root, edits: 0))
            guard var node = try transaction.node(.root) else { throw Failure(.corrupted, "the index has no root folder") }
            node.mode = root.metadata.mode
            node.owner = root.metadata.owner
            node.group = root.metadata.group
            node.modificationTime = root.metadata.modificationTime
            try transaction.update(node)
        }
    }

    private func mount(_ beginning: Beginning) throws(StartFailure) {
        do throws(Failure) {
            try recover()
            try session.mount()
        } catch {
            throw StartFailure(error.atStart(in: configuration.stateFolder))
        }
        engine.start(
            observer: filesystem, isConnected: beginning.isConnected, asking: beginning.asking,
            patience: configuration.requestDeadline)
        if holder?.device != nil { filesystem.resumeOpenFiles() }
        hub.listen(PresenterNews(index: index, coordinator: filesystem.coordinator))
        hub.start()
        // Before the first claim can have one of its own.
        itemServices.snapshots.sweep()
        session.run()
        OwnedThread(
            name: "rubbish",
            { [self] in
                itemServices.start(services.moveNotes)
                do throws(Failure) {
                    let removed = try filesystem.removeRubbish()
                    if removed > 0 { logger.info("removed content files that nothing names", metadata: ["count": "\(removed)"]) }
                } catch {
                    logger.warning("content files could not be tidied", metadata: ["reason": "\(error.message)"])
                }
            }
        ).detach()
        OwnedThread(name: "checkpoint", { [index, logger] in Domain.checkpointRegularly(index, logger) }).detach()
        keyValues.start()
        services.start()
        refreshQuota()
    }

    private func recover() throws(Failure) {
        let boot = bootIdentifier()
        let (lastBoot, wasClosed): (String?, Bool) = try index.read { transaction throws(Failure) in
            (try transaction.setting("boot"), try transaction.setting("closed") == "yes")
        }
        let isUnclean = lastBoot != nil && !wasClosed
        try filesystem.recover(isUnclean: isUnclean, hasPowerFailed: isUnclean && lastBoot != boot)
        try index.write { transaction throws(Failure) in
            try transaction.setSetting("boot", boot)
            try transaction.setSetting("closed", nil)
        }
        // On the disk before anybody writes: it says that the next start has to look.
        if wasClosed { try index.synchronize() }
    }

    /// Moves the index's log into its file when it has grown; sleeps while nothing is written.
    private static func checkpointRegularly(_ index: Index, _ logger: Logger) {
        while index.waitUntilCheckpointIsDue() {
            do throws(Failure) {
                try index.checkpoint()
                // So much was written that much was allocated, too: the system gets back what is free.
                ProcessMemory.giveBack()
            } catch {
                logger.warning("the index's log could not be moved", metadata: ["reason": "\(error.message)"])
            }
        }
    }

    // MARK: Quota

    /// Asks the provider for its room at most every ten seconds, without anybody waiting; not again
    /// before it has answered, as each call of one that hangs may hold a thread.
    func refreshQuota() {
        guard provider.capabilities.contains(.quota) else { return }
        let now = clock.uptime()
        let isDue = life.withLock { life in
            if life.isAskingForQuota { return false }
            if let last = life.lastQuotaCheck, now - last < .seconds(10) { return false }
            life.lastQuotaCheck = now
            life.isAskingForQuota = true
            return true
        }
        guard isDue else { return }
        Task { [provider, filesystem] in
            let quota = try? await provider.quota()
            life.update { $0.isAskingForQuota = false }
            guard let quota else { return }
            filesystem.setQuota(total: quota.total, available: quota.available)
        }
    }
}
