import PromiseTestSupport
import Synchronization

/// Uploads and copies in parts, for a `Bucket`. Their end honours no condition.
final class BucketParts: Sendable {
    private struct Upload {
        var metadata: [String]
        var parts: [Int: String] = [:]
    }

    private let uploads = Mutex<(count: Int, open: [String: Upload])>((0, [:]))

    /// Nil for what has nothing to do with parts.
    func answer(
        _ request: ScriptedServer.Request, _ key: String, _ query: String, _ bucket: Bucket
    ) -> String? {
        let values = query.split(separator: "&").map {
            $0.split(separator: "=", maxSplits: 1).map(String.init)
        }
        func value(_ name: String) -> String? { values.first { $0.first == name }?.last }
        if request.method == "POST", value("uploads") != nil { return begin(request) }
        guard let name = value("uploadId") else { return nil }
        if request.method == "PUT", let number = value("partNumber").flatMap({ Int($0) }) {
            return take(request, number, name, bucket)
        }
        guard let upload = uploads.withLock({ $0.open.removeValue(forKey: name) }) else {
            return reply("404 Not Found")
        }
        guard request.method == "POST" else { return reply("204 No Content") }
        let whole = upload.parts.sorted { $0.key < $1.key }.map(\.value).joined()
        bucket.put(key, whole, upload.metadata)
        return reply("200 OK", [], "<Result><ETag>\(Bucket.tag(whole))</ETag></Result>")
    }

    private func begin(_ request: ScriptedServer.Request) -> String {
        let lines = request.head.split(separator: "\r\n").map(String.init)
        let metadata = lines.filter { $0.lowercased().hasPrefix("x-amz-meta-") }
        let number = uploads.withLock { uploads in
            uploads.count += 1
            uploads.open["\(uploads.count)"] = Upload(metadata: metadata)
            return uploads.count
        }
        return reply("200 OK", [], "<Result><UploadId>\(number)</UploadId></Result>")
    }

    private func take(
        _ request: ScriptedServer.Request, _ number: Int, _ name: String, _ bucket: Bucket
    ) -> String {
        var (part, answer) = (request.body, "")
        if let source = Bucket.value("x-amz-copy-source", request) {
            // What is copied is not that large here: it is all in the first part.
            let whole = bucket.body(Bucket.decoded(source.dropFirst("/bucket/".count)))
            (part, answer) = (number == 1 ? whole ?? "" : "", "<Result><ETag>part</ETag></Result>")
        }
        uploads.withLock { $0.open[name]?.parts[number] = part }
        return reply("200 OK", ["ETag: part"], answer)
    }
}
