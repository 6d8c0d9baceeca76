import Testing

extension MountSuites {
    /// Parts of a folder, in order, as pickers show them.
    @Suite struct ListingTests {
        /// Types, states and tags are ordered by their names, however many lines have the same one.
        @Test(.timeLimit(.minutes(2))) func aFolderIsListedInEachOrder() async throws {
            try await MountedDomain.with(.init(uploadDelay: "0s")) { domain in
                try await domain.shell("python3 \"$W/listing-orders.py\" \"$M\" many --count 2000", seconds: 100)
            }
        }
    }
}
