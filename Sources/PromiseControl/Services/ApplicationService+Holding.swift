import PromiseAccess
import PromiseCoordination
import PromiseCore
import PromiseDomain
import Synchronization

// How long an application keeps others out: of what it may write for as long as it likes, of what it may read for a moment.

/// The claims of one launch.
struct HeldClaims {
    /// What a claim is about: a name, or a folder in which nothing has the name yet.
    enum Item {
        case name(EntryID)
        case folder(NodeID)
    }

    struct Claim {
        var items: [Item]
        /// Tells whoever has it that it is over.
        var ending: (@Sendable () -> Void)?
    }

    static let refusal = Failure(
        .busy, "others waited too long for the end of a claim of this program: it may claim what it may only read in a minute")
    private static let penalty = Duration.seconds(60)

    private var claims: [ClaimID: Claim] = [:]
    /// Until then it has no claim on what it may only read.
    private var barredUntil: ContinuousClock.Instant?

    var all: Set<ClaimID> { Set(claims.keys) }
    var isBarred: Bool { barredUntil.map { .now < $0 } ?? false }

    subscript(id: ClaimID) -> Claim? {
        get { claims[id] }
        set { claims[id] = newValue }
    }

    /// False when it was known to nobody.
    mutating func forget(_ id: ClaimID) -> Bool { claims.removeValue(forKey: id) != nil }

    /// It has held others up.
    mutating func bar(_ id: ClaimID) -> Claim? {
        guard let claim = claims.removeValue(forKey: id) else { return nil }
        barredUntil = .now + HeldClaims.penalty
        return claim
    }
}

extension ApplicationService {
    /// Purposes of applications are their own: whoever guesses that of a program outside shares nothing with it.
    func own(_ purpose: Purpose) -> Purpose {
        guard case .application(let name, _) = principal else { return purpose }
        return Purpose(rawValue: "\(name)/\(purpose.rawValue)")
    }

    var isHoldingUp: Bool { claims.withLock { $0.isBarred } }

    func note(_ claim: GrantedClaim, _ request: ClaimRequest) {
        var items: [HeldClaims.Item] = []
        for (number, item) in request.items.enumerated() {
            guard let holder = claim.holder(number) else { continue }
            if holder.missing == nil, let name = try? base.entry(of: holder.node, at: item.path) {
                items.append(.name(name))
            } else {
                items.append(.folder(holder.node))
            }
        }
        claims.withLock { $0[claim.id] = HeldClaims.Claim(items: items, ending: request.ending) }
    }

    /// Others have waited for the end of a claim for a while: it ends, unless the application may write all that it is about.
    func endOverdue(_ id: ClaimID) {
        guard let claim = claims.withLock({ $0[id] }), !claim.items.allSatisfy(mayHold) else { return }
        guard let barred = claims.withLock({ $0.bar(id) }) else { return }
        _ = grants.refuse(principal, "claims.hold", "claim \(id): others wait for its end")
        base.release(id)
        barred.ending?()
    }

    /// A presenter was asked: others wait for its answer about what it may only read for as long as that is due to its launch.
    func limit(_ number: UInt64, of presenter: PresenterID) {
        Task { [weak self] in
            guard let self, !mayWriteWhatShows(presenter) else { return }
            guard let wait = questions.withLock({ $0.ask(number, of: presenter, now: .now) }) else {
                _ = base.answered(number, by: presenter, hasFailed: false)
                return
            }
            try? await Task.sleep(for: wait)
            let late = questions.withLock { $0.end(now: .now) }
            for (number, presenter) in late { _ = base.answered(number, by: presenter, hasFailed: false) }
        }
    }

    private func mayHold(_ item: HeldClaims.Item) -> Bool {
        switch item {
        case .name(let name): mayWrite(name)
        case .folder(let node): (try? grants.allowed(principal, node)) == .readWrite
        }
    }

    /// True also of what is no more: it is in nobody's way.
    func mayWrite(_ name: EntryID) -> Bool {
        do {
            guard let node = try base.currentNode(of: name) else { return true }
            return try grants.allowed(principal, node) == .readWrite
        } catch {
            return false
        }
    }
}
