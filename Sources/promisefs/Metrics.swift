import PromiseWire

/// What can be measured of domains, in the text format of Prometheus, version 0.0.4. Pure.
struct Metrics {
    /// One number, and what it is of.
    struct Sample: Encodable, Equatable {
        var name: String
        var labels: [String: String]
        var value: UInt64
    }

    private struct Family {
        var name: String
        var help: String
        var isCounter = false
        var value: @Sendable (StatusDocument) -> UInt64?
    }

    /// Each name, with its meaning. Counters begin anew with the daemon; a name's meaning never changes.
    private static let families: [Family] = [
        Family(name: "online", help: "1 while the provider answers.") { $0.connection == "online" ? 1 : 0 },
        Family(name: "items", help: "Items that are known.") { UInt64($0.nodes) },
        Family(name: "placeholders", help: "Files whose content is not here.") { UInt64($0.placeholders) },
        Family(name: "pending_items", help: "Items whose changes the provider has not seen.") { UInt64($0.pending) },
        Family(name: "failing_items", help: "Those of them of which a try failed.") { UInt64($0.failing) },
        Family(name: "uploading_items", help: "Items that are being sent.") { UInt64($0.uploading) },
        Family(name: "downloading_items", help: "Items that are being fetched.") { UInt64($0.downloading) },
        Family(name: "conflicts", help: "Documents with unresolved versions.") { $0.conflicts.map { UInt64($0) } },
        Family(name: "unlisted_folders", help: "Folders that the provider did not show.") { $0.unlisted.map { UInt64($0) } },
        Family(name: "excluded_items", help: "Items that stay on this machine.") { $0.excluded.map { UInt64($0) } },
        Family(name: "fetched_bytes_total", help: "Content that was fetched.", isCounter: true) { $0.bytesFetched },
        Family(name: "uploaded_bytes_total", help: "Content that was sent.", isCounter: true) { $0.bytesUploaded },
        Family(name: "cache_bytes", help: "Content that is kept here.") { $0.cacheBytes },
        Family(name: "cache_limit_bytes", help: "How much is to be kept at most.") { $0.cacheLimit },
        Family(name: "quota_bytes", help: "What the provider has room for.") { $0.quotaTotal },
        Family(name: "quota_available_bytes", help: "What is left of that.") { $0.quotaAvailable },
        Family(name: "disk_available_bytes", help: "Room on the disk of the state folder.") { $0.diskAvailable },
        Family(name: "open_files", help: "Files that programs have open.") { UInt64($0.openFiles) },
        Family(name: "daemon_restarts_total", help: "Daemons that the mount has had before.", isCounter: true) {
            UInt64($0.restarts)
        },
        Family(name: "daemon_uptime_seconds", help: "How long the daemon has run.") { $0.uptimeSeconds.map { UInt64($0) } },
    ]

    private static let prefix = "promisefs_"

    /// Of each family the help, the type, and what is measured.
    private var lines: [(help: String, type: String, samples: [Sample])] = []

    struct Domain {
        var name: String
        var mountPoint: String
        /// Nil when its daemon does not answer.
        var status: StatusDocument?
    }

    init(_ domains: [Domain]) {
        add("up", "1 while the domain's daemon answers.", false) { domain in [([:], domain.status == nil ? 0 : 1)] }
        for family in Metrics.families {
            add(family.name, family.help, family.isCounter) { domain in
                domain.status.flatMap(family.value).map { [([:], $0)] } ?? []
            }
        }
        add("requests_total", "What the kernel has asked, by its name for it.", true) { domain in
            (domain.status?.requests ?? [:]).sorted { $0.key < $1.key }.map { (["request": $0.key], $0.value) }
        }
        let programs: [(String, String, (HydrationDocument) -> UInt64)] = [
            ("program_fetches_total", "How often a program caused a fetch.", { $0.fetches }),
            ("program_fetched_bytes_total", "What was fetched for a program.", { $0.bytes }),
            ("program_refusals_total", "How often content was refused to a program.", { $0.refusals }),
        ]
        for (name, help, value) in programs {
            add(name, help, true) { domain in
                (domain.status?.hydrations ?? []).map { (["program": $0.program], value($0)) }
            }
        }

        func add(
            _ name: String, _ help: String, _ isCounter: Bool,
            _ values: (Domain) -> [([String: String], UInt64)]
        ) {
            let samples = domains.flatMap { domain in
                // Two users may have a domain of one name.
                let own = ["domain": domain.name, "mountpoint": domain.mountPoint]
                return values(domain).map { labels, value in
                    Sample(name: Metrics.prefix + name, labels: labels.merging(own) { $1 }, value: value)
                }
            }
            if !samples.isEmpty { lines.append((help, isCounter ? "counter" : "gauge", samples)) }
        }
    }

    var samples: [Sample] { lines.flatMap(\.samples) }

    var text: String {
        lines.map { family in
            let name = family.samples[0].name
            return "# HELP \(name) \(family.help)\n# TYPE \(name) \(family.type)\n"
                + family.samples.map { sample in
                    let labels = sample.labels.sorted { $0.key < $1.key }.map { "\($0.key)=\"\(Metrics.escaped($0.value))\"" }
                    return "\(name){\(labels.joined(separator: ","))} \(sample.value)\n"
                }.joined()
        }.joined()
    }

    private static func escaped(_ label: String) -> String {
        label.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}
