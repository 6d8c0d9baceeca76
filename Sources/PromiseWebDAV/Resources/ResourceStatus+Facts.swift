import PromiseCore
import PromiseHTTP
import PromiseProvider

// What follows from what a server says of a resource.

extension ResourceStatus {
    static let folderVersion = ContentVersion("folder")

    var version: ContentVersion {
        if isCollection { return ResourceStatus.folderVersion }
        return entityTag.map { ContentVersion(EntityTag.opaque($0)) } ?? versionByTime
    }

    var versionByTime: ContentVersion {
        ContentVersion("\(contentLength ?? 0)-\(lastModified ?? "")")
    }

    /// Of a folder, as far as it is told.
    var quota: Quota? {
        guard let available = quotaAvailable else { return nil }
        // A store without a limit may say so with the largest number.
        let (total, isBeyond) = available.addingReportingOverflow(quotaUsed ?? 0)
        return Quota(total: isBeyond ? .max : total, available: available)
    }

    /// A name that is only locked (RFC 4918, appendix D.1), or that the server says is not there.
    var isNothing: Bool {
        if let status, !(200..<300).contains(status) { return true }
        return !isCollection && entityTag == nil && contentLength == nil && lastModified == nil
    }

    /// What a file must have that is not told, as the end of a sentence.
    var lack: String? {
        if isCollection { return nil }
        if contentLength == nil { return "says no size of it that can be" }
        return entityTag == nil && lastModified == nil
            ? "says neither its version nor its time" : nil
    }

    /// Why the server tells nothing of a resource, when it is not for its being gone.
    var trouble: Int? {
        refusals.union(status.map { [$0] } ?? []).filter {
            !(200..<300).contains($0) && $0 != 404 && $0 != 410
        }.max()
    }
}
