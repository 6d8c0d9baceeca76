import PromiseCoordination
import PromiseCore
import PromiseSystem

/// Claims that the daemon makes itself, before it follows what the provider did to items.
///
/// Such a claim is granted at once when nobody is in its way; otherwise the change waits, without a deadline, as claims end
/// with their processes. Granted ones are held until everything that may be followed has been.
final class RemoteClaims: Sendable {
    private struct Claim {
        /// Nil while it is being entered.
        var id: ClaimID?
        var isGranted = false
    }

    private let coordinator: Coordinator
    /// By the item's node. A leaf, also within the coordinator's lock.
    private let claims = RankedMutex<[NodeID: Claim]>(.remoteClaims, [:])

    init(coordinator: Coordinator) { self.coordinator = coordinator }

    /// True when the claim on an item is there. Otherwise `onGrant` is called when it is.
    func isGranted(_ node: NodeID, _ intents: [Intent], onGrant: @escaping @Sendable () -> Void) -> Bool {
        let known = claims.withLock { claims in
            defer { if claims[node] == nil { claims[node] = Claim() } }
            return claims[node]
        }
        if let known { return known.isGranted }
        do throws(Failure) {
            let id = try coordinator.claim(intents, purpose: nil, isOwn: true, timeout: nil) { [self] _, outcome in
                let hasWaited = claims.withLock { claims in
                    if case .granted = outcome { claims[node]?.isGranted = true } else { claims[node] = nil }
                    return claims[node]?.id != nil
                }
                if hasWaited { onGrant() }
            }
            return claims.withLock { claims in
                claims[node]?.id = id
                return claims[node]?.isGranted ?? true
            }
        } catch {
            // There are too many claims already, or the domain is ending: nothing is gained by not following.
            claims.withLock { $0[node] = nil }
            return true
        }
    }

    /// Gives back what was granted, used or not.
    func releaseGranted() {
        let granted = claims.withLock { claims in
            let granted = claims.filter { $0.value.isGranted }
            for node in granted.keys { claims[node] = nil }
            return granted.values.compactMap(\.id)
        }
        granted.forEach(coordinator.release)
    }
}
