import Glibc
import PromiseSystem

/// Says a picker line by line on stderr and takes lines from stdin: so that stdout is what was
/// picked.
public final class PlainPicker: Sendable {
    private struct State {
        var screen = PlainScreen()
        var machine: PickerMachine?
        /// What the machine was told to be in sight, and of which list: once.
        var asked: (generation: Int, sight: PickerEvent)?
        /// Events that the machine has not taken yet.
        var untakenCount = 0

        /// What was to be done is done.
        var isIdle: Bool {
            guard let machine else { return false }
            return untakenCount == 0 && !machine.isBusy && machine.phase != .performing
        }

        /// What was asked is answered: the next line is about what is said now.
        var isSettled: Bool {
            guard let machine, isIdle else { return false }
            if machine.phase == .finished || machine.message != nil { return true }
            guard let total = machine.total else { return false }
            return total == 0 || machine.current != nil
        }
    }

    private let session: PickerSession
    private let state = Monitor(State())

    public init(_ session: PickerSession) { self.session = session }

    public func run(_ request: PickerRequest) async -> PickerOutcome {
        say(PlainScreen.help + "\n")
        // It waits for a line, and cannot be told that none is wanted any more: it ends with the
        // process.
        OwnedThread(name: "lines") { [self] in
            while let line = readLine() { take(line) }
            waitUntilSettled()
            session.post(.cancel)
        }.detach()
        return await session.run(request) { [self] machine in show(machine) }
    }

    private func show(_ machine: PickerMachine) {
        let (text, isMissing, sight) = state.update { state in
            state.machine = machine
            let (text, sight) = state.screen.say(machine)
            let isAsked = state.asked.map { $0 == (machine.generation, sight) } ?? false
            let isMissing = machine.phase == .browsing && !isAsked && needs(machine, sight)
            if isMissing { state.asked = (machine.generation, sight) }
            return (text, isMissing, sight)
        }
        say(text)
        if isMissing { session.post(sight) }
    }

    /// What is to be said is not there yet.
    private func needs(_ machine: PickerMachine, _ sight: PickerEvent) -> Bool {
        guard case .see(let first, _) = sight, let total = machine.total else { return false }
        return first < total && machine.item(first) == nil
    }

    private func waitUntilSettled() { _ = state.wait { $0.isSettled ? true : nil } }

    private func take(_ line: String) {
        // Whoever goes waits for no list for long.
        if line == PlainScreen.cancel {
            _ = state.wait(timeout: .seconds(1)) { $0.isSettled ? true : nil }
            _ = state.wait { $0.isIdle ? true : nil }
        } else {
            waitUntilSettled()
        }
        let (events, text) = state.update { state in
            guard let machine = state.machine else { return ([PickerEvent](), "") }
            let (events, text) = state.screen.take(line, machine)
            state.untakenCount += events.count
            return (events, text)
        }
        say(text)
        for event in events {
            session.post(event) { [self] _ in state.update { $0.untakenCount -= 1 } }
        }
    }

    private func say(_ text: String) {
        guard !text.isEmpty else { return }
        let bytes = Array(text.utf8)
        _ = bytes.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
