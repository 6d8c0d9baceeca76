import PromiseCore

/// What of a domain is worth a word to the person at the desk: what its status says now, and said before. Pure.
struct Tidings {
    /// What is seen of a domain at one time.
    struct Look {
        var time: Duration
        /// Documents with unresolved versions.
        var conflicts = 0
        /// Changes that the provider did not take, and why the first was not.
        var refused = 0
        var reason: String?
        /// What is being fetched, by what a request calls it, with its name for people.
        var downloads: [String: String] = [:]
    }

    struct Tiding: Encodable, Equatable {
        var domain: String
        var title: String
        var text: String
    }

    /// A download that took so long is told when it ends: nobody looks at it any more.
    static let longDownload = Duration.seconds(30)
    /// Between two tidings of one kind.
    static let rest = Duration.seconds(60)

    private struct Kind {
        var told = 0
        var last: Duration?

        /// How many there are is told when there are more than were told of, and not all the time.
        mutating func isNews(_ count: Int, at time: Duration) -> Bool {
            told = min(told, count)
            guard count > told, last.map({ time - $0 >= Tidings.rest }) ?? true else { return false }
            (told, last) = (count, time)
            return true
        }
    }

    let domain: String
    /// For commands.
    let place: String
    private var conflicts = Kind()
    private var refusals = Kind()
    /// A change that is refused once may be taken the next time.
    private var refusedBefore = 0
    private var downloads: [String: (name: String, since: Duration)] = [:]

    init(domain: String, place: String) {
        self.domain = domain
        self.place = place
    }

    /// `ended`: downloads that took long and are under way no more; whether they arrived the daemon knows.
    mutating func take(_ look: Look) -> (tidings: [Tiding], ended: [(item: String, name: String)]) {
        var tidings: [Tiding] = []
        if conflicts.isNews(look.conflicts, at: look.time) {
            let documents = look.conflicts == 1 ? "1 document is" : "\(look.conflicts) documents are"
            tidings.append(tiding("\(documents) in conflict", "All versions are there: promisefs conflicts \(place)"))
        }
        let refused = min(look.refused, refusedBefore)
        refusedBefore = look.refused
        if refusals.isNews(refused, at: look.time) {
            let changes = refused == 1 ? "1 change is" : "\(refused) changes are"
            let reason = look.reason.map { $0 + "\n" } ?? ""
            tidings.append(tiding("\(changes) not taken by the provider", "\(reason)See: promisefs pending \(place)"))
        }
        let gone = downloads.filter { look.downloads[$0.key] == nil }
        downloads = look.downloads.reduce(into: [:]) { known, download in
            known[download.key] = (download.value, downloads[download.key]?.since ?? look.time)
        }
        let ended = gone.filter { look.time - $0.value.since >= Tidings.longDownload }
        return (tidings, ended.map { (item: $0.key, name: $0.value.name) }.sorted { $0.name < $1.name })
    }

    func arrived(_ name: String) -> Tiding { tiding("'\(name)' is here", "All of its content has been fetched.") }

    private func tiding(_ title: String, _ text: String) -> Tiding {
        Tiding(domain: domain, title: "\(domain): \(title)", text: text)
    }
}
