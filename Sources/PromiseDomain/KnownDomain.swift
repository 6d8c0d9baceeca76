import PromiseCore
import PromiseIndex
import PromiseMount
import PromiseProvider
import PromiseSystem

// A domain that was mounted before is mounted whatever is wrong with its provider: what is here of it
// can be read and worked on.

extension DomainConfiguration {
    /// It has been mounted before. Blocking.
    package var isKnown: Bool {
        let index = stateFolder + Array("/index.sqlite".utf8)
        return (try? FileStatus.of(index, label: "domain.known")) != nil
    }

    /// Why the options as of mount(8) cannot be used, a sentence; nil: they can.
    package static func problem(ofMountOptions options: [String]) -> String? {
        var target = MountOptions(mountPoint: [], domain: "")
        do throws(Failure) {
            for option in options { try target.apply(option) }
            return nil
        } catch {
            return error.message
        }
    }
}

extension ProviderChoice {
    /// The provider, or, of a known domain, one that is made later when it cannot be now.
    func make(isKnown: Bool, keptLogin: DomainConfiguration.KeptLogin?) throws(Domain.StartFailure) -> any Provider {
        do throws(Domain.StartFailure) {
            return try make()
        } catch {
            guard isKnown else { throw error }
            return BelatedProvider(name: name) { () async throws(ProviderError) in
                do throws(Domain.StartFailure) {
                    var choice = self
                    if choice.login == nil, let keptLogin { choice.login = try await keptLogin() }
                    return try choice.make()
                } catch {
                    throw ProviderError(.permanent, error.message)
                }
            }
        }
    }
}

extension KnownPlaces {
    /// What was agreed on with the provider, or was seen there last.
    func know(_ index: Index) {
        know { item, parent, name in
            try? index.read { transaction throws(Failure) in
                if let known = try transaction.synced(item)?.item, known.parent == parent, known.name == name { return nil }
                return try transaction.remotePath(of: item)
            }
        }
    }
}
