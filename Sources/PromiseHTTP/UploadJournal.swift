import Crypto
package import NIOCore
package import PromiseCore
package import PromiseProvider
import Synchronization

/// Uploads in parts that have begun and not ended, remembered so that the next daemon goes on with them.
package final class UploadJournal: Sendable {
    package struct Record: Codable, Hashable, Sendable {
        /// As it is in a URL.
        package var key: String
        /// What the server calls the upload, or the name under which it is aside.
        package var upload: String
        package var size: UInt64
        package var partByteCount: UInt64
        /// What is kept with the content: it was said at the beginning.
        package var headers: [String]
        /// When it was begun, or gone on with last. Nanoseconds since 1970.
        package var began: Int64
        /// Of the parts that were sent or are about to be, in order, where the server cannot be asked what it has. Nothing else
        /// than a content with these parts is ever sent to that upload.
        package var digests: [String]?

        package init(
            key: String, upload: String, size: UInt64, partByteCount: UInt64, headers: [String] = [], began: Timestamp,
            digests: [String]? = nil
        ) {
            self.key = key
            self.upload = upload
            self.size = size
            self.partByteCount = partByteCount
            self.headers = headers
            self.began = began.rawValue
            self.digests = digests
        }

        /// The upload is of such a content. Whether it is of this one is told by its parts.
        package func fits(size: UInt64, headers: [String]) -> Bool { self.size == size && self.headers == headers }
    }

    /// Of a part; no other has the same. Blocking.
    package static func digest(of part: ByteBuffer) -> String {
        var hash = SHA256()
        part.withUnsafeReadableBytes { hash.update(bufferPointer: $0) }
        return hexadecimalText(hash.finalize())
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

    /// To be called before the part leaves. Returns when it is written, for whoever comes after a kill: of what this machine sent
    /// before a power cut nothing is on its way any more, and without a journal an upload begins anew. Blocking.
    package func note(_ digest: String, ofPart number: Int, of record: Record) {
        records.withLock { records in
            guard let index = records.firstIndex(where: { $0.key == record.key && $0.upload == record.upload }),
                records[index].digests?.count == number - 1
            else { return }
            records[index].digests?.append(digest)
            file.write(records, survivesPowerCut: false)
        }
    }

    /// What the uploads are called.
    package var names: Set<String> { records.withLock { Set($0.map(\.upload)) } }

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

extension ProviderError.Code {
    /// An upload that ends so is left as it is: a later attempt goes on with it, or another daemon.
    package var leavesUpload: Bool {
        switch self {
        case .retry, .retryAfter, .offline, .authenticate, .cancelled, .sourceChanged, .localDiskFull: true
        default: false
        }
    }
}
