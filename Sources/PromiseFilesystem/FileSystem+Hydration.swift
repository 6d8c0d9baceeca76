import PromiseCore
import PromiseIndex
import PromiseSync
import PromiseSystem

// Who may cause content to be fetched: asked only when an open or a read would have to wait for the provider.

extension FileSystem {
    /// The caller's program, for the ledger. Throws `.hydrationRefused` when the rules are against it.
    /// `opening`: how the file is being opened, where it is.
    func admit(_ caller: Caller, opening: OpenRequest? = nil) throws(Failure) -> String {
        var facts = CallerFacts.of(process: caller.process)
        facts.sparesAccessTime = opening?.sparesAccessTime ?? false
        let program = facts.program.isEmpty ? HydrationLedger.unknown : escapedForDisplay(facts.programName)
        switch configuration.hydrationRules.decision(on: facts) {
        case .allow: return program
        case .budget(let budget): if engine.hydrator.isWithin(budget, program: program) { return program }
        case .refuse: break
        }
        engine.hydrator.noteRefusal(of: program)
        throw Failure(.hydrationRefused, "'\(program)' may not cause content to be fetched")
    }
}
