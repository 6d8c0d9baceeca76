import PromiseCore
import PromiseIndex
import PromiseSystem

// What writing and a change of owner do to the bits that lend privilege (setattr_should_drop_suidgid of fs/attr.c).

extension FileSystem {
    /// After a write or a truncation by somebody without CAP_FSETID.
    func clearSetID(of id: NodeID, for caller: Caller) throws(Failure) {
        guard let known = try known(id), known.mode & 0o6000 != 0 else { return }
        let isMember = known.lendsOnlyItsGroup && caller.isMember(of: known.group)
        try index.write { transaction throws(Failure) in
            guard var node = try transaction.node(id) else { return }
            node.clearSetID(isMember: isMember)
            node.changeTime = clock.now()
            try transaction.update(node)
            try markPending(namesOf: id, transaction)
        }
        notifier?.invalidateAttributes(of: id)
    }
}

extension Node {
    /// Set-group-ID and no right of the group to execute.
    var lendsOnlyItsGroup: Bool { mode & 0o2010 == 0o2000 }

    /// `isMember`: whoever did it is in the file's group, or root. Matters only if `lendsOnlyItsGroup`.
    mutating func clearSetID(isMember: Bool) {
        mode &= ~0o4000
        if !lendsOnlyItsGroup || !isMember { mode &= ~0o2000 }
    }
}

extension Caller {
    /// Also by a supplementary group, which only proc(5) tells; of a process that cannot be looked at nothing is assumed.
    func isMember(of wanted: UInt32) -> Bool {
        if user == 0 || group == wanted { return true }
        guard process != 0, let status = readSmallFile(Array("/proc/\(process)/status".utf8)) else { return false }
        let groups = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("Groups:") }
        return groups?.split(whereSeparator: \.isWhitespace).contains { UInt32($0) == wanted } ?? false
    }
}
