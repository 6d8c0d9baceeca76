/// Which names stay on this machine. Each default has its reason beside it.
package struct ExclusionRules: Sendable {
    /// A name pattern: `*` stands for any bytes, `?` for one byte, everything else for itself.
    package struct Pattern: Sendable, Hashable {
        package let bytes: [UInt8]
        package init(_ text: String) { bytes = Array(text.utf8) }

        package func matches(_ name: FileName) -> Bool { wildcardMatch(pattern: bytes[...], name: name.bytes[...]) }
    }

    package static let defaults: [Pattern] = [
        Pattern(".*.sw?"),  // vim's swap files: .name.swp, .swo, …
        Pattern(".sw?"),  // vim's swap file for a buffer without a name
        Pattern("4913"),  // vim's probe whether a folder can be written
        Pattern("*~"),  // backups of vim, emacs, nano, joe
        Pattern(".#*"),  // emacs' lock links
        Pattern("#*#"),  // emacs' auto-save files
        Pattern(".~lock.*#"),  // LibreOffice's lock files
        Pattern("~$*"),  // Microsoft Office's owner files
        Pattern(".goutputstream-*"),  // GLib's temporary file of a save
        Pattern(".fuse_hidden*"),  // an unlinked open file, as other FUSE file systems keep it
        Pattern(".nfs????????*"),  // the same on NFS
    ]

    /// SQLite's companions of an open database (`db-wal`, `db-shm`, `db-journal`) mean nothing without the
    /// database file's state of the same moment, so they stay here while that file stands beside them.
    package static let databaseSuffixes = ["-wal", "-shm", "-journal"].map { Array($0.utf8) }

    package var patterns: [Pattern]

    package init(patterns: [Pattern] = ExclusionRules.defaults) { self.patterns = patterns }

    package func excludes(_ name: FileName) -> Bool { patterns.contains { $0.matches(name) } }

    /// The database a companion file belongs to, or nil when the name is not a companion's.
    package static func databaseName(ofCompanion name: FileName) -> FileName? {
        for suffix in databaseSuffixes where name.bytes.count > suffix.count && name.bytes.suffix(suffix.count) == suffix[...] {
            return FileName(trusted: Array(name.bytes.dropLast(suffix.count)))
        }
        return nil
    }
}
