package import PromiseProvider

/// How a server takes a part of a file, leaving the rest as it is, also when the part breaks off.
package enum PartWriting: String, Codable, Sendable {
    /// It does not.
    case nothing
    /// PUT with `Content-Range`, which Apache honours, and which others take for the whole (RFC 9110, section 14.5).
    case contentRange
    /// PATCH with `X-Update-Range`, as sabre/dav calls it.
    case partialUpdate
    /// Each part is a file in a folder of its own, and MOVE makes one of them (ownCloud, Nextcloud).
    case chunks
}

/// Where a server has pictures that it makes of files itself.
package enum PreviewSource: String, Codable, Sendable {
    case nowhere
    /// GET of the file with `?preview=1` (ownCloud).
    case file
    /// A page of its own that is told which file (Nextcloud).
    case page
}

/// What a server really does, as it was seen and not as it says. A server that could not be asked (nothing may be written
/// there) is taken for one that does nothing more than it must.
package struct ServerTraits: Codable, Hashable, Sendable {
    /// What the answers are valid for: the server's name and version, and the address.
    var subject = ""
    /// What this state folder calls itself in locks.
    var owner: String?
    /// LOCK gives a token, and without it a PUT is refused.
    package var locks = false
    /// LOCK of a name that is free makes an empty file of it.
    var lockMakesFile = false
    /// MOVE onto a locked name wants the source locked, too, and both tokens together (Go's WebDAV).
    var moveNeedsSourceLock = false
    /// Properties of ours are kept, also over MOVE.
    package var keepsProperties = false
    /// A PUT that breaks off leaves the old content, not half of the new one.
    package var putIsWhole = false
    /// MOVE keeps the entity tag.
    var moveKeepsTag = false
    /// The same content has the same tag at any time (tags are hashes).
    var tagsTellContent = false
    /// MOVE honours `Overwrite: F`.
    var honoursOverwrite = false
    /// PUT honours `If-None-Match: *` and a wrong `If-Match`.
    package var honoursConditionsOnPut = false
    /// PUT with `If-None-Match: *` makes a file of a free name and leaves one that is there as it is.
    package var putsOnlyNew = false
    /// What listings say of a file has the entity tag that comes with its content.
    var listsTags = true
    package var hasRanges = false
    package var hasQuota = false
    /// `sync-collection` tells all that a listing shows: files and folders that come, change and go, and properties of ours.
    package var tellsNews = false
    /// How parts of files are sent; nil: an older version has not tried it, nor what follows.
    package var partWriting: PartWriting?
    /// PUT takes the modification time, in whole seconds, from `X-OC-Mtime`.
    package var takesTimes: Bool?
    /// PUT refuses content that has not the SHA-1 that `OC-Checksum` says.
    package var takesChecksums: Bool?
    package var previews: PreviewSource?
    /// Parts that are made one file may go over one that is there, which stays the same file, and only if that has the tag that
    /// `If` names.
    var joinsOverMatching: Bool?
    /// MOVE refuses to replace what has not the tag that `If` names. Only tried without locks.
    var movesOnlyOverMatching: Bool?
    /// The reply to a PUT names the tag that listings have then. Nil: remembered before it was looked at.
    var putTellsTag: Bool?
    /// Nothing could be tried.
    package var isGuess = true
    /// Trying broke off, as the server had passing trouble. Like any guess not remembered: the next mount tries again.
    var brokeOff = false

    /// `oc:fileid`, which a file keeps over MOVE, and which no other has. Nil: remembered before it was asked for.
    package var tellsNumbers: Bool?
    /// DELETE refuses a wrong `If-Match`, of files and of folders. Nil: remembered before it was tried.
    package var deletesOnlyMatching: Bool?
    /// The same of a tag that `If` names, also of what has just been written. Nil: remembered before it was tried.
    package var deletesOnlyTagged: Bool?
    /// MOVE of a file, the same.
    package var movesOnlyTagged: Bool?

    /// What is refused in names, or comes back as something else. Nil: remembered before it was tried.
    package var escapes: NameEscapes?
    /// Names that are escaped come back as they were.
    var keepsEscapes: Bool?

    /// DELETE ends a lock of what it removes, as it must (RFC 4918, section 9.6). Nil: remembered before it was tried.
    package var locksEndWithItem: Bool?

    /// What has a name is found under one that differs in case, or in the form of its letters, only. Nil: remembered
    /// before it was tried.
    package var foldsNames: Bool?

    /// What is moved to a name goes over a file whose name differs in case only, whatever the move
    /// says. Nil: remembered before it was tried.
    package var overwritesTwins: Bool?

    /// Before anything was tried: what a server lacks of this, it tells whoever asks for it.
    static var provisional: ServerTraits {
        var traits = ServerTraits()
        (traits.hasRanges, traits.hasQuota) = (true, true)
        return traits
    }

    /// Nothing that matters was added since this was remembered.
    var isComplete: Bool {
        partWriting != nil && deletesOnlyMatching != nil && locksEndWithItem != nil && putTellsTag != nil
            && escapes != nil && deletesOnlyTagged != nil && foldsNames != nil && overwritesTwins != nil
    }

    /// It had trouble while it was tried, of which the next try may show nothing.
    var isUnclear: Bool { brokeOff || !isGuess && escapes == nil }

    /// What the server lacks and how that is met, a sentence each, for people.
    package var shortcomings: [String] {
        var result: [String] = []
        if brokeOff {
            result.append("the server had trouble while it was tried what it does: mount again to try again")
        } else if isGuess {
            // What was not tried is not what it lacks.
            return ["nothing may be written here, so what the server does could not be tried"]
        }
        if !locks {
            let means =
                honoursConditionsOnPut
                ? "writes are conditional requests instead" : "a change by another program within the same moment can be lost"
            result.append("the server has no locks: \(means)")
        }
        if !putIsWhole { result.append("a broken upload may leave half a file: content is uploaded aside and moved") }
        if !keepsProperties {
            result.append("the server keeps no properties: modes and modification times stay on this machine, links are refused")
        }
        if !hasRanges { result.append("the server sends no ranges: files are fetched whole") }
        if partWriting == .nothing {
            result.append("the server takes no parts of files: a large upload that breaks off begins anew")
        }
        if let escapes, !escapes.isEmpty {
            let means = keepsEscapes != false ? "they are escaped there, a dot as ‛2E" : "what has one stays on this machine"
            result.append("the server cannot keep names with \(escapes.names.joined(separator: ", ")): \(means)")
        }
        if overwritesTwins == true {
            result.append(
                "the server puts a name over another one that differs in case only: "
                    + "the second of two such names stays on this machine")
        }
        if !hasQuota { result.append("the server tells no quota") }
        return result
    }
}
