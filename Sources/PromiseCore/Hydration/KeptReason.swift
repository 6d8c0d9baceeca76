/// Why the local copy of a file is not given back.
package enum KeptReason: String, Sendable, CaseIterable {
    case open, pinned, unsent, excluded, claimed, nameless

    /// A clause for people.
    package var sentence: String {
        switch self {
        case .open: "it is open"
        case .pinned: "it is pinned"
        case .unsent: "the provider does not have it yet"
        case .excluded: "it is kept on this machine only"
        case .claimed: "a program that coordinates uses it"
        case .nameless: "it has no name any more"
        }
    }
}
