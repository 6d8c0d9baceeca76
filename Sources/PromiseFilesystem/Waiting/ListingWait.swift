import PromiseCore
import PromiseSync

/// A request that goes on when a folder has been listed at the provider. It is answered once.
struct ListingWait<Value: Sendable>: Sendable {
    /// What a request waits for: all of a folder, or something of it that was not there yet.
    enum Extent { case whole, more }
    /// How a request goes on otherwise when it has waited, in so many rounds; nil: it need not.
    typealias Detour = @Sendable (_ rounds: Int) -> (() -> ParkedRequest?)?

    let engine: SyncEngine
    let parking: Parking
    /// Asked again in each round.
    let folder: @Sendable () -> NodeID
    let extent: Extent
    let reply: FileSystem.Reply<Value>
    /// Nil: a folder has to be listed first.
    let body: @Sendable () throws(Failure) -> Value?
    let detour: Detour

    func begin(rounds: Int) -> ParkedRequest {
        let request = parking.enter { [reply] in reply(.failure($0)) }
        list(request, rounds)
        return request
    }

    private func list(_ request: ParkedRequest, _ rounds: Int) {
        let proceed: HydrationReply = { result in
            // Claimed before the body runs: a request that was given up changes nothing.
            guard let parked = parking.take(request) else { return }
            do throws(Failure) {
                try result.get()
                try goOn(request, parked, rounds - 1)
            } catch {
                parking.answered(request)
                reply(.failure(error))
            }
        }
        switch extent {
        case .whole: engine.list(folder(), reply: proceed)
        case .more: engine.listMore(of: folder(), reply: proceed)
        }
    }

    private func goOn(
        _ request: ParkedRequest, _ parked: Parking.Parked, _ rounds: Int
    ) throws(Failure) {
        if let other = detour(rounds) {
            try parking.putBack(request, parked)
            if parking.claimToGoOn(request) { parking.follow(request, other()) }
        } else if let value = try body() {
            parking.answered(request)
            reply(.success(value))
        } else if rounds > 0 {
            try parking.putBack(request, parked)
            list(request, rounds)
        } else {
            throw Failure(.stale, "the folder changes too quickly to be listed")
        }
    }
}
