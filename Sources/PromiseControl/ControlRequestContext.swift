import Glibc
import Hummingbird
import Logging
import NIOCore
import PromiseAccess
import PromiseCore
import PromiseWire

/// A request with its connection, whose peer is checked.
struct ControlRequestContext: RequestContext {
    struct Source: RequestContextSource {
        let logger: Logger
        let connection: ControlConnection
    }

    var coreContext: CoreRequestContextStorage
    let connection: ControlConnection
    var principal: Principal { connection.principal }

    init(source: Source) {
        coreContext = CoreRequestContextStorage(source: source)
        connection = source.connection
    }
}

/// Lets only this user and root in, by what the kernel says of the peer (SO_PEERCRED, unix(7)). The folder (0700) and the
/// socket (0600) keep others out already; this holds when somebody has loosened them.
struct PeerCheck: RouterMiddleware {
    typealias Context = ControlRequestContext

    func handle(
        _ request: Request, context: ControlRequestContext, next: (Request, ControlRequestContext) async throws -> Response
    ) async throws -> Response {
        guard let peer = context.connection.peer else {
            throw Failure(.refused, "the connection does not say who is at its other end")
        }
        guard peer.user == 0 || peer.user == geteuid() else {
            throw Failure(.refused, "this domain belongs to another user; ask as its owner or as root")
        }
        guard context.principal.isOwner || PeerCheck.isForApplications(request.uri.path) else {
            throw Failure(.refused, "an application asks for what it keeps, and for nothing else")
        }
        return try await next(request, context)
    }

    /// What knows by itself which application may ask for what.
    private static func isForApplications(_ path: String) -> Bool {
        ["/v1/values", "/v1/containers", "/v1/bookmarks"].contains { path == $0 || path.hasPrefix($0 + "/") }
    }
}

/// An answer shows nothing that a live query, or the kernel, has not been told of.
struct SettledAnswers: RouterMiddleware {
    typealias Context = ControlRequestContext

    let service: any ControlService

    func handle(
        _ request: Request, context: ControlRequestContext, next: (Request, ControlRequestContext) async throws -> Response
    ) async throws -> Response {
        let response = try await next(request, context)
        await service.settle()
        return response
    }
}

/// Turns everything thrown into a problem document.
struct ProblemReplies: RouterMiddleware {
    typealias Context = ControlRequestContext

    func handle(
        _ request: Request, context: ControlRequestContext, next: (Request, ControlRequestContext) async throws -> Response
    ) async throws -> Response {
        let problem: ProblemDocument
        do {
            return try await next(request, context)
        } catch let failure as Failure {
            problem = ProblemDocument(failure)
        } catch let thrown as ProblemDocument {
            problem = thrown
        } catch let error as HTTPError {
            problem =
                switch error.status.code {
                case 404: .request("there is no \(request.method.rawValue) \(request.uri.path) in this protocol", status: 404)
                default: .request(error.body ?? error.status.reasonPhrase, status: error.status.code)
                }
        } catch {
            context.logger.warning("a control request failed", metadata: ["path": "\(request.uri.path)", "error": "\(error)"])
            problem = ProblemDocument(Failure(.inputOutput, "the daemon could not answer: \(error)"))
        }
        return jsonResponse(problem, status: problem.status, mediaType: ProblemDocument.mediaType)
    }
}

/// A whole document as a response.
func jsonResponse(_ document: some Encodable, status: Int = 200, mediaType: String = "application/json") -> Response {
    var headers = HTTPFields()
    headers[.contentType] = mediaType
    headers[.cacheControl] = "no-store"
    return Response(
        status: HTTPResponse.Status(code: status), headers: headers,
        body: ResponseBody(byteBuffer: ByteBuffer(bytes: WireCoding.bytes(document))))
}
