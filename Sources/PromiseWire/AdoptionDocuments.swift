/// Files of a folder outside of the mount that are to become the content of the same items.
public struct AdoptionRequest: Codable, Sendable, Equatable {
    /// Absolute, percent-encoded, as all paths here.
    public var folder: String
    /// What the folder is in the domain.
    public var path: String
    /// Below both.
    public var files: [String]

    public init(folder: String, path: String, files: [String]) {
        self.folder = folder
        self.path = path
        self.files = files
    }
}

public struct AdoptionDocument: Codable, Sendable, Equatable {
    public var taken: Int
    public var bytesTaken: UInt64
    public var alreadyHere: Int
    public var failures: [ItemFailureDocument]

    public init(taken: Int, bytesTaken: UInt64, alreadyHere: Int, failures: [ItemFailureDocument]) {
        self.taken = taken
        self.bytesTaken = bytesTaken
        self.alreadyHere = alreadyHere
        self.failures = failures
    }
}
