package import PromiseCore
package import PromiseHTTP
import Synchronization

/// Uploads in parts that have begun and not ended, remembered so that the next daemon goes on with them.
package final class UploadJournal: Sendable {
    package struct Record: Codable, Hashable, Sendable {
        /// As it is in a URL.
        package var key: String
        package var upload: String
        package var size: UInt64
        package var partByteCount: UInt64
        /// What is kept with the content: it was said at the beginning.
        package var headers: [String]
        /// When it was begun, or gone on with last. Nanoseconds since 1970.
        package var began: Int64

        package init(
            key: String, upload: String, size: UInt64, partByteCount: UInt64, headers: [String], began: Timestamp
        ) {
            self.key = key
            self.upload = upload
            self.size = size
            self.partByteCount = partByteCount
            self.headers = headers
            self.began = began.rawValue
        }

        /// The upload is of such a content. Whether it is of this one is told by its parts.
        package func fits(size: UInt64, headers: [String]) -> Bool { self.size == size && self.headers == headers }
    }

    /// What nobody went on with for so long is given up.
    package static let age = Duration.seconds(7 * 86_400)

    private let file: RememberedFile<[Record]>
    private let records: Mutex<[Record]>

    package init(_ file: RememberedFile<[Record]>) {
        self.file = file
        records = Mutex(file.read() ?? [])
    }

    package func record(_ key: String) -> Record? { records.withLock { $0.first { $0.key == key } } }

    /// Returns when it is written. Blocking.
    package func add(_ record: Record) {
        records.withLock { records in
            records.removeAll { $0.key == record.key }
            records.append(record)
            file.write(records)
        }
    }

    package func remove(_ record: Record) {
        records.withLock { records in
            records.removeAll { $0.key == record.key && $0.upload == record.upload }
            file.write(records)
        }
    }

    /// Somebody goes on with it. Blocking.
    package func touch(_ record: Record, at time: Timestamp) {
        records.withLock { records in
            guard let index = records.firstIndex(where: { $0.key == record.key && $0.upload == record.upload }) else { return }
            records[index].began = time.rawValue
            file.write(records)
        }
    }

    package func old(at time: Timestamp) -> [Record] {
        let limit = time.advanced(by: .zero - UploadJournal.age).rawValue
        return records.withLock { $0.filter { $0.began < limit } }
    }
}
