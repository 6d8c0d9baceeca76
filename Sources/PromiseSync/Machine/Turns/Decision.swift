import Logging
import PromiseCore
import PromiseIndex
import PromiseProvider

/// What was decided about one item, and from what: a line for people, in the log at `trace` level and in a
/// simulation's trace. Why the step has to wait is a line of its own.
struct Decision {
    /// What set it off.
    enum Cause: String {
        case follow, tell, answer
    }

    /// Why the step is not carried out now.
    enum Obstacle: String {
        case folderIsMoving = "a folder of its path is being moved"
        case operationOnItem = "an operation on the item is under way"
        case operationAtPlace = "an operation is under way at the place"
        case placeOfRemoved = "what was removed here is still at the place"
        case placeTaken = "an item that goes elsewhere is still at the place"
        case folderUnmade = "its folder is to be made first"
        case noPath = "no path leads to it"
        case childrenFirst = "what is in the folder goes first"
        case newsFirst = "what the provider says is followed first"
        case whereabouts = "an earlier move may have led elsewhere"
        case content = "its content is not all here, or still being written"
        case claim = "a claim is held"
        case lastCopy = "the only copy of a content is not on the disk yet"
        case again = "the trees are looked at again"
    }

    var item: ItemIdentifier?
    var entry: Entry?
    var observation: Observation
    var step: Step
    var cause: Cause

    /// `item /f2 · local … · synced … · remote … · step`.
    var text: String {
        let name = [item?.rawValue, entry.map { "entry \($0.id.rawValue) node \($0.node.rawValue)" }]
            .compactMap { $0 }.joined(separator: " ")
        let parts = [
            "local \(observation.localText)", "synced \(observation.synced?.text ?? "none")",
            "remote \(observation.remoteText)", step.text,
        ]
        return "\(cause.rawValue) \(name): " + parts.joined(separator: " · ")
    }
}

extension Turn {
    /// Plans; and says so, where somebody reads it.
    mutating func decide(
        _ item: ItemIdentifier?, _ entry: Entry?, _ observation: Observation, _ cause: Decision.Cause
    ) -> Step {
        let step = plan(observation)
        if facts.isTracing {
            let decision = Decision(
                item: item, entry: entry, observation: observation, step: step, cause: cause)
            log(.trace, "\(decision.text)")
        }
        return step
    }

    /// A line about what led to a decision.
    mutating func explain(_ text: @autoclosure () -> String) {
        if facts.isTracing { log(.trace, "  \(text())") }
    }

    /// Says why something is not done now.
    mutating func note(_ obstacle: Decision.Obstacle) {
        explain("not now: \(obstacle.rawValue)")
    }
}

extension Observation {
    fileprivate var localText: String {
        guard let local else { return "none" }
        return "\(local.kind) \(local.name) in \(local.parent?.rawValue ?? "an unmade folder")"
            + (local.isEdited ? " edited" : "")
    }

    fileprivate var remoteText: String {
        switch remote {
        case nil: "as synced"
        case .deleted: "deleted"
        case .present(let item): item.text
        }
    }
}

extension Item {
    fileprivate var text: String {
        "\(kind) \(name) in \(parent?.rawValue ?? "nothing") version \(version.rawValue)"
    }
}

extension Step {
    fileprivate var text: String {
        switch self {
        case .nothing: "nothing"
        case .settle: "settle"
        case .forget: "forget"
        case .insertLocal: "insert here"
        case .removeLocal: "remove here"
        case .moveLocal: "move here"
        case .replaceContent: "replace the content here"
        case .updateMetadata: "take the metadata"
        case .takeTime: "take the folder's time"
        case .detach: "go on as a new item"
        case .keepBoth: "keep both"
        case .create: "create there"
        case .push(let content, let place, let metadata):
            "push" + (content ? " content" : "") + (place ? " place" : "") + (metadata ? " metadata" : "")
        case .deleteRemote: "delete there"
        }
    }
}
