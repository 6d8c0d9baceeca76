import Glibc
import PromiseSystem
import Synchronization

/// A server on loopback that answers as a test says, in a thread for each connection: for what real servers do rarely.
package final class ScriptedServer: Sendable {
    package struct Request: Sendable {
        package var method: String
        package var path: String
        package var head: String
        package var body: String
    }

    /// The whole reply as it goes over the wire; nil cuts the connection.
    package typealias Script = @Sendable (Request) -> String?

    private struct Conduct: Sendable { let answer: Script }

    package let port: UInt16
    private let listener: CInt
    private let conduct: Conduct
    private let heads = Mutex<[String]>([])
    private let sent = Mutex(0)

    /// What clients took of the replies, or the kernel for them.
    package var sentByteCount: Int { sent.withLock { $0 } }

    /// Of every request so far.
    package var requests: [String] { heads.withLock { $0 } }

    package init(_ script: @escaping Script) {
        conduct = Conduct(answer: script)
        (listener, port) = boundSocket()
        precondition(listen(listener, 16) == 0, "a port can be listened at")
        OwnedThread(name: "scripted-server") { [self] in accept() }.detach()
    }

    package func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

    private func accept() {
        while case let connection = Glibc.accept(listener, nil, nil), connection >= 0 {
            OwnedThread(name: "scripted-client") { [self] in serve(connection) }.detach()
        }
        close(listener)
    }

    private func serve(_ connection: CInt) {
        defer { close(connection) }
        var received: [UInt8] = []
        while let request = next(connection, &received) {
            heads.withLock { $0.append(request.head) }
            guard let answer = conduct.answer(request) else { return }
            var bytes = Array(answer.utf8)
            // A body there would be the beginning of the next reply, which breaks the connection off, sooner or later.
            if request.method == "HEAD", let end = answer.utf8.firstRange(of: "\r\n\r\n".utf8)?.upperBound {
                bytes = Array(answer.utf8[..<end])
            }
            let count = bytes.withUnsafeBytes { send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            sent.withLock { $0 += max(0, count) }
            if answer.contains("Connection: close") { return }
        }
    }

    private func next(_ connection: CInt, _ received: inout [UInt8]) -> Request? {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let gap = Array("\r\n\r\n".utf8)
        var searched = 0
        var found: (head: String, start: Int, end: Int)?
        while true {
            if found == nil, received.count >= gap.count {
                let places = searched...(received.count - gap.count)
                let position = places.first { received[$0..<($0 + gap.count)].elementsEqual(gap) }
                searched = received.count - gap.count + 1
                if let position {
                    let head = String(decoding: received[..<position], as: UTF8.self)
                    let start = position + gap.count
                    found = (head, start, start + ScriptedServer.length(head))
                }
            }
            if let found, received.count >= found.end {
                let words = found.head.split(separator: " ")
                let body = String(decoding: received[found.start..<found.end], as: UTF8.self)
                received.removeFirst(found.end)
                return Request(method: String(words[0]), path: String(words[1]), head: found.head, body: body)
            }
            let count = recv(connection, &buffer, buffer.count, 0)
            guard count > 0 else { return nil }
            received += buffer[..<count]
        }
    }

    private static func length(_ head: String) -> Int {
        head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length:") }
            .flatMap { Int($0.drop { $0 != ":" }.dropFirst().drop { $0 == " " }) } ?? 0
    }
}

/// A port on loopback at which nobody listens, and which nobody else is given meanwhile.
package final class DeafPort: Sendable {
    package let number: UInt16
    private let socket: CInt

    package init() { (socket, number) = boundSocket() }
    deinit { close(socket) }
}

private func boundSocket() -> (descriptor: CInt, port: UInt16) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
            precondition(bind(descriptor, address, length) == 0, "a port can be had")
            getsockname(descriptor, address, &length)
        }
    }
    return (descriptor, UInt16(bigEndian: address.sin_port))
}

/// A reply with a body of a length that is said, truly or not.
package func reply(_ status: String, _ headers: [String] = [], _ body: String = "", length: Int? = nil) -> String {
    let lines = ["HTTP/1.1 \(status)", "Content-Length: \(length ?? body.utf8.count)"] + headers
    return lines.joined(separator: "\r\n") + "\r\n\r\n" + body
}
