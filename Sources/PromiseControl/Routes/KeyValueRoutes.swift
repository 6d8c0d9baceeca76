import HTTPTypes
import Hummingbird
import NIOCore
import PromiseCore
import PromiseDomain
import PromiseKeyValue
import PromiseWire

// The key-value store of applications.

extension ControlRoutes {
    func addKeyValueRoutes(to router: Router<ControlRequestContext>) {
        router.get("v1/values") { request, context in try await keptValues(request, context) }
        router.post("v1/values") { request, context in try await keep(request, context) }
        router.post("v1/values/synchronize") { request, context in
            let document = try await decode(ValuesRequest.self, from: request)
            try await service.keyValues.synchronize(document.application, by: context.principal)
            return jsonResponse(
                DoneDocument(done: service.keyValues.trouble(of: document.application) == nil))
        }
        router.get("v1/values/events") { request, context in try await valueEvents(request, context) }
    }

    private func application(of request: Request) throws -> String {
        guard let application = try text("application", of: request) else {
            throw ProblemDocument.request("say which application: ?application=com.example.editor")
        }
        return application
    }

    private func keptValues(_ request: Request, _ context: ControlRequestContext) async throws -> Response {
        let application = try application(of: request)
        let key = try text("key", of: request).map { Key($0) }
        let values = try await service.keyValues.values(of: application, by: context.principal)
        let documents = values.filter { key == nil || $0.key == key }.sorted { $0.key < $1.key }.map
        { key, value in
            KeptValueDocument(application: application, key: key.text, value: KeptValue(value))
        }
        return jsonResponse(
            KeptValuesDocument(
                application: application, values: documents,
                trouble: service.keyValues.trouble(of: application)))
    }

    private func keep(_ request: Request, _ context: ControlRequestContext) async throws -> Response {
        let body: ByteBuffer
        do {
            body = try await request.body.collect(upTo: RequestLimit.valueByteCountMax)
        } catch is NIOTooManyBytesError {
            throw ProblemDocument(
                Failure(.quotaExceeded, "the value is larger than any application may keep"))
        }
        let document = try decode(KeptValueDocument.self, from: body.readableBytesView, of: request)
        guard let kept = document.value else {
            let isRemoved = try await service.keyValues.remove(
                document.key, of: document.application, by: context.principal)
            return jsonResponse(DoneDocument(done: isRemoved))
        }
        guard let value = Value(kept.json) else {
            throw ProblemDocument(
                Failure(
                    .invalid,
                    "the value cannot be kept: it is nested too deep, or its data is no Base64"))
        }
        try await service.keyValues.set(
            value, for: document.key, of: document.application, by: context.principal)
        return jsonResponse(DoneDocument(done: true))
    }

    private func valueEvents(_ request: Request, _ context: ControlRequestContext) async throws -> Response {
        let notices = try await service.keyValues.notices(
            of: try application(of: request), by: context.principal)
        return streamResponse { [keepAlive] send in
            let (events, continuation) = AsyncStream.makeStream(
                of: ValueNotice?.self, bufferingPolicy: .bufferingNewest(1000))
            let listener = keepAlive.listen { continuation.yield(nil) }
            defer { keepAlive.forget(listener) }
            let pump = Task {
                for await notice in notices { continuation.yield(notice) }
                continuation.finish()
            }
            defer { pump.cancel() }
            try await send(ServerEvent(name: "watching", data: "{}"))
            for await notice in events {
                let event = notice.map { notice in
                    let document = ValueNoticeDocument(
                        reason: notice.reason.rawValue, keys: notice.keys.map(\.text))
                    return ServerEvent(name: "changed", data: WireCoding.text(document))
                }
                try await send(event)
            }
        }
    }
}

extension KeptValue {
    init(_ value: Value) {
        switch value {
        case .string(let text): self = .string(text)
        case .integer(let integer): self = .integer(integer)
        case .number(let number): self = .number(number)
        case .bool(let bool): self = .bool(bool)
        case .date(let time): self = .date(nanoseconds: time.rawValue)
        case .data: self = .data(base64: value.json["data"]?.text ?? "")
        case .list(let list): self = .list(list.map { KeptValue($0) })
        case .map(let map):
            self = .map(map.reduce(into: [:]) { $0[$1.key.text] = KeptValue($1.value) })
        }
    }

    /// As the store writes it.
    var json: JSON {
        switch self {
        case .string(let text): .map(["string": .string(text)])
        case .integer(let integer): .map(["integer": .number(String(integer))])
        case .number(let number): .map(["number": .number(number.description)])
        case .bool(let bool): .map(["bool": .bool(bool)])
        case .date(let nanoseconds): .map(["date": .number(String(nanoseconds))])
        case .data(let text): .map(["data": .string(text)])
        case .list(let list): .map(["list": .list(list.map(\.json))])
        case .map(let map):
            .map(["map": .map(map.reduce(into: [:]) { $0[Key($1.key)] = $1.value.json })])
        }
    }
}
