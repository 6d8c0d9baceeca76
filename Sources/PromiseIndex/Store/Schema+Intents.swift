import GRDB
import PromiseCore

// Before migration 5 what was sent to the provider was text in settings whose keys begin with `intent.`.

extension Schema {
    /// A line of such a text has eight words: entry, edits, kind, size, time, and in hexadecimal
    /// name, item (`-`: none) and parent. A move was kept under its item and under its place.
    static func migrateIntents(_ database: Database) throws {
        let rows = try GRDB.Row.fetchAll(database, sql: "SELECT key, value FROM setting WHERE key GLOB 'intent.*' ORDER BY key")
        var lines: [(text: Substring, isMove: Bool)] = []
        for row in rows {
            let (key, value): (String, String) = (row["key"], row["value"])
            for line in value.split(separator: "\n") {
                if let known = lines.firstIndex(where: { $0.text == line }) {
                    lines[known].isMove = key.hasPrefix("intent.place")
                } else {
                    lines.append((line, false))
                }
            }
        }
        for line in lines {
            guard let values = values(of: line.text, isMove: line.isMove) else { continue }
            try database.execute(sql: "INSERT INTO sent VALUES (\(values))")
        }
        try database.execute(sql: "DELETE FROM setting WHERE key GLOB 'intent.*'")
    }

    /// The values of a row, as SQL; nil for a line that was damaged. What is put into it is numbers and hexadecimal digits.
    private static func values(of line: Substring, isMove: Bool) -> String? {
        let parts = line.split(separator: " ")
        guard parts.count == 8, let entry = Int64(parts[0]), let edits = UInt64(parts[1]), let kind = Int64(parts[2]),
            let size = UInt64(parts[3]), let time = Int64(parts[4]), isHexadecimal(parts[5]), isHexadecimal(parts[7])
        else { return nil }
        let item = isHexadecimal(parts[6]) ? "CAST(x'\(parts[6])' AS TEXT)" : "NULL"
        let numbers = "\(kind), \(Int64(bitPattern: edits)), \(Int64(bitPattern: size)), \(time)"
        let place = "CAST(x'\(parts[7])' AS TEXT), x'\(parts[5])'"
        return "NULL, \(entry), \(item), \(isMove ? 1 : 0), \(place), \(numbers), NULL, NULL, NULL"
    }

    private static func isHexadecimal(_ text: Substring) -> Bool {
        text.utf8.count % 2 == 0 && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }
}
