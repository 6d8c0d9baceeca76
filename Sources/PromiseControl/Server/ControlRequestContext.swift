import Glibc
import Hummingbird
import Logging
import NIOCore
import PromiseAccess
import PromiseCore
import PromiseDomain
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
/// socket (0600) keep others out already; this holds when somebody has loosened them. The socket of a launch lets the
/// processes of the launch in, and nobody else; they are not the owner, whatever their user is.
struct PeerCheck: RouterMiddleware {
    typealias Context = ControlRequestContext

    let grants: Grants?

    func handle(
        _ request: Request, context: ControlRequestContext, next: (Request, ControlRequestContext) async throws -> Response
    ) async throws -> Response {
        guard let peer = context.connection.peer else {
            throw Failure(.refused, "the connection does not say who is at its other end")
        }
        if case .application(let application, let launch) = context.principal {
            let route = "\(request.method.rawValue) \(request.uri.path)"
            // Where nothing is given there are values alone, which know by themselves whose they are.
            guard let grants else {
                guard request.uri.path == "/v1/values" || request.uri.path.hasPrefix("/v1/values/") else {
                    throw PeerCheck.notForApplications
                }
                return try await next(request, context)
            }
            guard grants.isProcess(context.connection.process, of: launch) else {
                throw grants.refuse(
                    context.principal, "socket.peer", "\(route) by process \(peer.process) of \(application)")
            }
            guard PeerCheck.isForApplications(request) else {
                throw grants.refuse(context.principal, "socket.route", route)
            }
            do {
                return try await next(request, context)
            } catch {
                // What was refused for want of rights has its line.
                if (error as? Failure)?.code != .refused {
                    let reason = (error as? ProblemDocument)?.detail ?? (error as? Failure)?.message ?? "\(error)"
                    _ = grants.refuse(context.principal, "socket.request", "\(route): \(reason)")
                }
                throw error
            }
        }
        guard peer.user == 0 || peer.user == geteuid() else {
            throw Failure(.refused, "this domain belongs to another user; ask as its owner or as root")
        }
        let process = context.connection.process
        // An ordinary user's daemon may not look at root's processes; no sandbox of its has one.
        let isRoot = process == nil && peer.user == 0 && geteuid() != 0
        if let grants, !isRoot, grants.isSandboxed(process) {
            throw grants.refuse(context.principal, "socket.peer", "\(request.uri.path) from a sandbox")
        }
        return try await next(request, context)
    }

    private static let notForApplications = Failure(
        .refused, "an application asks for what it keeps and was given, and for nothing else")

    /// What knows by itself which application may ask for what, or asks an `ApplicationService`.
    private static let folders = [
        "/v1/values", "/v1/containers", "/v1/bookmarks", "/v1/references", "/v1/grants", "/v1/scopes",
        "/v1/claims", "/v1/accesses", "/v1/presenters", "/v1/queries", "/v1/availability",
    ]
    private static let ownersAlone = [
        "/v1/grants/audit", "/v1/references/card", "/v1/references/lead",
    ]
    private static let items: Set<String> = [
        "GET /v1/items", "POST /v1/items/values", "POST /v1/items/fetch", "GET /v1/items/versions",
        "GET /v1/items/thumbnail", "PUT /v1/items/thumbnail", "POST /v1/picks", "GET /v1/ping",
    ]

    private static func isForApplications(_ request: Request) -> Bool {
        let path = request.uri.path
        if items.contains("\(request.method.rawValue) \(path)") { return true }
        if ownersAlone.contains(path) { return false }
        return folders.contains { path == $0 || path.hasPrefix($0 + "/") }
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
        // It shows nothing, and is to wait for nothing.
        if request.uri.path != "/v1/ping" { await service.settle() }
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
