import PromiseCoordination
import PromiseCore
import PromiseDomain

/// What the daemon does to items for a command waits as that command would if it did it itself:
/// nobody loses what a claim protects, and those who show an item are asked.
struct HeldPlaces: Sendable {
    let service: any ControlService

    /// Of an item, or of a place where something is to be; where its folder is not there either, of
    /// what is to be made first. Nil while nobody coordinates. `purpose`: whose claims are not
    /// waited for.
    func claim(_ path: [FileName], for purpose: String?) async throws(Failure) -> GrantedClaim? {
        guard service.isCoordinated else { return nil }
        var place = path
        while true {
            do throws(Failure) {
                return try await service.claim(
                    ClaimRequest(
                        items: [(path: place, access: .write([]))], purpose: Purpose(said: purpose),
                        process: 0, timeout: Coordination.evictionPatience))
            } catch where error.code == .notFound {
                if place.popLast() == nil { throw error }
            }
        }
    }

    func release(_ claim: GrantedClaim?) {
        if let claim { service.release(claim.id) }
    }
}
