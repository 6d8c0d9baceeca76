/// Which of two storages have the login that the Secret Service keeps of a domain: it has one for a
/// domain, whatever storage that is at.
struct KeptLogins: Equatable {
    var isOfOld: Bool
    var isOfNew: Bool
    /// The new one has a login of its own, and the next mount would give it the kept one.
    var needsLogin: Bool

    /// Names of providers, in the one form that they have; `old` is nil where nobody knows it. The
    /// password is the old storage's, and no other server is to see it.
    init(old: String?, new: String?) {
        let account = old.flatMap(KeptLogins.account)
        isOfOld = old == nil || account != nil
        let next = new.flatMap(KeptLogins.account)
        isOfNew = account != nil && account == next
        needsLogin = isOfOld && next != nil && !isOfNew
    }

    /// Who is logged in where, for two to be compared: with the way there, as a password that goes
    /// over TLS is not to go without. Nil where nobody logs in, as at a folder.
    private static func account(of provider: String) -> String? {
        if provider.hasPrefix("extension") { return provider }
        if provider.hasPrefix("s3:") {
            let query = provider.drop { $0 != "?" }.dropFirst().split(separator: "&")
            return "s3 " + (query.first { $0.hasPrefix("endpoint=") } ?? "")
        }
        guard provider.hasPrefix("webdav+") else { return nil }
        let parts = provider.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        return parts.prefix(3).joined(separator: "/")
    }
}
