/// What a server really does, as it was seen and not as it says. A server that could not be asked (nothing may be written
/// there) is taken for one that does nothing more than it must.
package struct S3Traits: Codable, Hashable, Sendable {
    /// How an entity tag is to be written for the server to know it in `If-Match` of PUT.
    package enum TagForm: String, Codable, Sendable {
        /// `"tag"`, as RFC 9110 has it.
        case quoted
        /// Ceph RGW refuses the right tag when it is quoted.
        case bare
    }

    /// What the answers are valid for: the server's name, and the address.
    var subject = ""
    /// PUT honours `If-None-Match: *`.
    package var refusesTaken = false
    /// PUT honours `If-Match`, in this form; nil: not at all.
    package var matchForm: TagForm?
    /// CompleteMultipartUpload honours `If-None-Match: *`; and `If-Match`.
    package var completionRefusesTaken = false
    package var completionMatches = false
    /// DELETE honours `If-Match`.
    package var deletionMatches = false
    /// CopyObject honours `If-None-Match: *`; and `x-amz-copy-source-if-match`.
    package var copyRefusesTaken = false
    package var copyMatchesSource = false
    package var hasRanges = false
    /// User metadata comes back.
    package var keepsMetadata = false
    /// Listings tell the time of an object that HEAD does.
    package var listsTrueTimes = true
    /// Keys may have control characters in them.
    package var keepsControls = false
    /// An empty object whose key ends with a slash is one, and nothing else.
    package var keepsMarkers = true
    package var hasMultipart = false
    /// CompleteMultipartUpload tells the tag that the object has from then on, or none.
    package var completionTellsTag = true
    /// PUT refuses content that has not the SHA-256 it comes with, and keeps that.
    package var verifiesChecksums = false
    /// Nothing could be tried.
    package var isGuess = true
    /// Trying broke off, as the server had passing trouble. Like any guess not remembered, and tried again.
    var brokeOff = false

    package init() {}

    /// Before anything was tried: what reads need, and every server does that is one.
    static var provisional: S3Traits {
        var traits = S3Traits()
        (traits.hasRanges, traits.keepsMetadata) = (true, true)
        (traits.keepsControls, traits.hasMultipart) = (true, true)
        return traits
    }

    package func tagText(_ tag: String) -> String { matchForm == .bare ? tag : "\"\(tag)\"" }

    /// What the server lacks and how that is met, a sentence each, for people.
    package var shortcomings: [String] {
        var result: [String] = []
        if brokeOff {
            result.append("the server had trouble while it was tried what it does; it is tried again")
        } else if isGuess {
            // What was not tried is not what it lacks.
            return ["nothing may be written here, so what the server does could not be tried"]
        }
        let risk = "is looked at right before, and a change by another program within that moment can be lost"
        if !refusesTaken || matchForm == nil {
            result.append("the server honours no condition on PUT: what is there \(risk)")
        }
        if hasMultipart && (!completionRefusesTaken || !completionMatches) {
            result.append("the server honours no condition at the end of a large upload: what is there \(risk)")
        }
        if !deletionMatches && !deletesByHollows {
            result.append("the server honours no condition on DELETE: what is there \(risk)")
        }
        let keepsTargets = copyRefusesTaken || copiesIntoHollows
        // A copy of what was changed meanwhile is noticed when the source is deleted on a condition.
        let keepsSources = copyMatchesSource || deletionMatches || deletesByHollows
        if !keepsTargets || !keepsSources {
            result.append("the server honours no condition on copies: what a rename meets \(risk)")
        }
        result.append("a rename is a copy and a deletion; of a folder, one for each object in it")
        if !hasRanges { result.append("the server sends no ranges: files are fetched whole") }
        if !keepsMetadata {
            result.append("the server keeps no metadata: modes and modification times stay on this machine, links are refused")
        }
        if !keepsControls { result.append("the server keeps no control characters in keys: they are escaped as ‛0A") }
        if !keepsMarkers {
            result.append("the server keeps no keys that end with a slash: folders have an object '\(KeyNames.keeper)' in them")
        }
        if !hasMultipart { result.append("the server takes no upload in parts: an upload that breaks off begins anew") }
        return result
    }
}
