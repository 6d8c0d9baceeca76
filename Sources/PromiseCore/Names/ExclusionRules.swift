/// Which names stay on this machine. Each default has its reason beside it.
package struct ExclusionRules: Sendable {
    /// A name pattern: `*` stands for any bytes, `?` for one byte, everything else for itself.
    package struct Pattern: Sendable, Hashable {
        package let bytes: [UInt8]
        package init(_ text: String) { bytes = Array(text.utf8) }

        package func matches(_ name: FileName) -> Bool { wildcardMatch(pattern: bytes[...], name: name.bytes[...]) }
    }

    /// Of files and links: a folder of such a name is somebody's folder.
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
        Pattern(".xdp-*"),  // the document portal's temporary file of a save
    ]

    /// Of folders, with everything below them.
    package static let folderDefaults: [Pattern] = [
        Pattern(".Trash"), Pattern(".Trash-*"),  // the desktop's trash of this disk (FreeDesktop's Trash specification)
        Pattern(".promisefs-draft-*"),  // a file package's next version, until it takes the package's place
        Pattern(".promisefs-views"),  // what applications make while they run
    ]

    /// SQLite's companions of an open database (`db-wal`, `db-shm`, `db-journal`) mean nothing without the
    /// database file's state of the same moment, so what is made while that file is open beside them stays here.
    package static let databaseSuffixes = ["-wal", "-shm", "-journal"].map { Array($0.utf8) }

    /// How every database file of SQLite begins (sqlite.org/fileformat.html, 1.3.1).
    package static let databaseBeginning = Array("SQLite format 3".utf8) + [0]

    package var patterns: [Pattern]
    package var folderPatterns: [Pattern]
    /// The user's own, of paths in the mount.
    package var own = IgnorePatterns(lines: [])

    package init(
        patterns: [Pattern] = ExclusionRules.defaults, folderPatterns: [Pattern] = ExclusionRules.folderDefaults
    ) {
        self.patterns = patterns
        self.folderPatterns = folderPatterns
    }

    package func excludes(_ name: FileName, isFolder: Bool = false) -> Bool {
        (isFolder ? folderPatterns : patterns).contains { $0.matches(name) }
    }

    /// The database a companion file belongs to, or nil when the name is not a companion's.
    package static func databaseName(ofCompanion name: FileName) -> FileName? {
        for suffix in databaseSuffixes where name.bytes.count > suffix.count && name.bytes.suffix(suffix.count) == suffix[...] {
            return FileName(trusted: Array(name.bytes.dropLast(suffix.count)))
        }
        return nil
    }
}
