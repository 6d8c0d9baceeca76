import GRDB
import PromiseCore

// Before migration 10 what was noted before the provider had it was text in settings: `noted.ENTRY`, with the identifier or
// nothing; `noted-left.ENTRY`, with the places that it left; `noted-at.PARENT.NAME`, which followed from those.

extension Schema {
    static func migrateNoted(_ database: Database) throws {
        let rows = try GRDB.Row.fetchAll(database, sql: "SELECT key, value FROM setting WHERE key GLOB 'noted*'")
        for row in rows {
            let (key, value): (String, String) = (row["key"], row["value"])
            let words = key.split(separator: ".")
            guard words.count == 2, let entry = Int64(words[1]) else { continue }
            if words[0] == "noted" {
                try database.execute(
                    sql: "INSERT OR REPLACE INTO noted VALUES (?1, nullif(?2, ''))", arguments: [entry, value])
            } else if words[0] == "noted-left" {
                for place in value.split(separator: " ") { try insert(place, leftBy: entry, database) }
            }
        }
        try database.execute(sql: "DELETE FROM setting WHERE key GLOB 'noted*'")
    }

    /// A place is four words: parent, time, `file` or `link`, and the name in hexadecimal digits. What is damaged is left out.
    private static func insert(_ place: Substring, leftBy entry: Int64, _ database: Database) throws {
        let words = place.split(separator: ".")
        guard words.count == 4, let parent = UInt64(words[0]), let time = Int64(words[1]) else { return }
        let kind: NodeKind = words[2] == "link" ? .link : .file
        let name = PathDigits.bytes(words[3])
        guard !name.isEmpty else { return }
        // What is in the statement itself are hexadecimal digits alone.
        try database.execute(
            sql: "INSERT OR IGNORE INTO noted_left VALUES (?1, ?2, x'\(PathDigits.text(name))', ?3, ?4)",
            arguments: [entry, Int64(bitPattern: parent), kind.rawValue, time])
    }
}
