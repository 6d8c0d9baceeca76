import PromiseCore
import PromiseIndex
import PromiseSync
import Synchronization

// How calls of the echo process are answered: as if it had made the change that the provider made. Whatever it calls beyond
// that is refused, so that a call that comes late or goes elsewhere changes nothing.

extension FileSystem {
    /// Nil: answered as for everybody, as the folders on its way are.
    func echoed(lookup name: FileName, in parent: NodeID, by caller: Caller) -> Result<LookupReply, Failure>? {
        guard echoes.table.isEcho(caller), let answer = echoes.table.lookup(TreePlace(name, in: parent)) else { return nil }
        do throws(Failure) {
            switch answer.lookup {
            case .absent: return .failure(Failure(.notFound, "it appears now"))
            case .node(let id):
                var reply = if let gone = answer.gone, gone.id == id { remember(gone) } else { try entry(of: id) }
                // For this call only.
                reply.entryLifetimeSeconds = 0
                reply.attributeLifetimeSeconds = 0
                return .success(.found(reply))
            }
        } catch {
            return .failure(error)
        }
    }

    func echoed(making name: FileName, in parent: NodeID, by caller: Caller) -> Result<EntryReply, Failure>? {
        guard echoes.table.isEcho(caller) else { return nil }
        guard echoes.table.makes(TreePlace(name, in: parent)) else { return .failure(notMeant) }
        do throws(Failure) { return .success(try entry(name, in: parent)) } catch { return .failure(error) }
    }

    func echoed(removing name: FileName, in parent: NodeID, by caller: Caller) -> Result<Void, Failure>? {
        guard echoes.table.isEcho(caller) else { return nil }
        return echoes.table.removes(TreePlace(name, in: parent)) ? .success(()) : .failure(notMeant)
    }

    func echoed(moving from: TreePlace, to: TreePlace, by caller: Caller) -> Result<Void, Failure>? {
        guard echoes.table.isEcho(caller) else { return nil }
        return echoes.table.moves(from, to: to) ? .success(()) : .failure(notMeant)
    }

    func echoed(touching node: NodeID, by caller: Caller) -> Result<AttributesReply, Failure>? {
        guard echoes.table.isEcho(caller) else { return nil }
        do throws(Failure) { return .success(try attributes(of: node, handle: nil)) } catch { return .failure(error) }
    }

    /// Without a part in the node's mode, as it reads and writes nothing: the kernel lets that be beside any other open.
    func echoed(openingBy caller: Caller) -> OpenReply? {
        echoes.table.isEcho(caller) ? OpenReply(handle: EchoTable.handle, isDirect: true) : nil
    }

    private var notMeant: Failure { Failure(.notFound, "there is no such change to be shown now") }
}
