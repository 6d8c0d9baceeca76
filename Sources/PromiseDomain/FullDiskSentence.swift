import PromiseCore

extension Failure {
    /// A disk without room is said as that, with what to do: which file of the state directory met it first says nothing to
    /// whoever mounts.
    func atStart(in stateFolder: [UInt8]) -> Failure {
        guard code == .storeFull || code == .quotaExceeded else { return self }
        let place = escapedForDisplay(stateFolder)
        let what = code == .storeFull ? "the disk of" : "your share of the disk of"
        return Failure(
            code, "\(what) the state directory '\(place)' is full: make room there, or choose another with --state-dir")
    }
}
