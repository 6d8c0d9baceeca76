import Logging

/// Puts what a machine logs, its decisions among it, into the printed trace.
struct DecisionLog: LogHandler {
    let machine: String
    let simulation: Simulation
    var logLevel = Logger.Level.trace
    var metadata: Logger.Metadata = [:]

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let reason = event.metadata?["reason"].map { " (\($0))" } ?? ""
        simulation.explain("\(machine) \(event.message)\(reason)")
    }
}
