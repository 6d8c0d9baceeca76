import Logging
import PromiseCore
import PromiseHTTP
import PromiseProvider
import PromiseS3
import PromiseSystem
import PromiseTestSupport
import Synchronization
import Testing

/// Services that give temporary access keys: which one is asked, what it is asked, and what is made of what it says.
struct KeyServiceTests {
    private static let location = "s3://bucket/?endpoint=http://127.0.0.1:1&region=eu-west-1"
    private static let json = """
        {"Code": "Success", "AccessKeyId": "id", "SecretAccessKey": "hidden", "Token": "sesame",
         "Expiration": "2100-01-02T03:04:05Z"}
        """
    private static let xml = """
        <AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
        <Credentials><AccessKeyId>id</AccessKeyId><SecretAccessKey>hidden</SecretAccessKey><SessionToken>sesame</SessionToken>
        <Expiration>2100-01-02T03:04:05.678Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult>
        </AssumeRoleWithWebIdentityResponse>
        """
    private static let key = AccessKey(identifier: "id", secret: Secret("hidden"), sessionToken: Secret("sesame"))

    private func find(_ variables: [String: String], token: String? = nil) throws(ProviderError) -> KeyOrigin? {
        let location = try S3Location(parsing: Self.location)
        return try KeyOrigin.find(for: location, containerToken: token.map { Secret($0) }) { variables[$0] }
    }

    /// Asks what `variables` name, where `@` is the server.
    private func answer(
        _ variables: [String: String], token: String? = nil, _ script: @escaping ScriptedServer.Script
    ) async throws -> (answer: KeyService.Answer, server: ScriptedServer) {
        let server = ScriptedServer(script)
        defer { server.stop() }
        let pool = BlockingPool(name: "test", threads: 1)
        defer { pool.stop() }
        let named = variables.mapValues { $0.replacing("@", with: "http://127.0.0.1:\(server.port)") }
        let origin = try #require(try find(named, token: token))
        return (await (try KeyService(origin: origin, pool: pool)).answer(), server)
    }

    private func fail(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) {
        Issue.record("\(text)", sourceLocation: sourceLocation)
    }

    private func isKey(_ answer: KeyService.Answer) -> Bool {
        guard case .key(let key, let end) = answer else { return false }
        return key == Self.key && end == Timestamp(seconds: 4_102_542_245, nanoseconds: 0)
    }

    // MARK: Which one

    @Test func servicesAreFoundInTheOrderOfTheSDKs() throws {
        var variables = [
            "AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": "arn:role",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/a?b=c", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "https://host/x",
        ]
        #expect(
            try find(variables)
                == .webIdentity(
                    server: "https://sts." + "eu-west-1.amazonaws.com", tokenFile: Array("/token".utf8), role: "arn:role",
                    session: "promisefs"))
        variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = nil
        #expect(try find(variables) == .container(server: "http://169.254.170.2", target: "/v2/a?b=c", token: nil))
        variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = nil
        #expect(
            try find(variables, token: "t") == .container(server: "https://host", target: "/x", token: .given(Secret("t"))))
        variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = nil
        #expect(try find(variables) == .instance(server: "http://169.254.169.254"))
        #expect(
            try find(["AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE": "IPv6"]) == .instance(server: "http://[fd00:ec2::254]"))
        #expect(try find(["AWS_EC2_METADATA_DISABLED": "True"]) == nil)
    }

    @Test func theEndpointOfSTSMayBeNamed() throws {
        let variables = ["AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": "r", "AWS_ENDPOINT_URL": "https://host:1/"]
        guard case .webIdentity(let all, _, _, _)? = try find(variables) else { return fail("another service") }
        let own = variables.merging(["AWS_ENDPOINT_URL_STS": "http://host:2"]) { $1 }
        guard case .webIdentity(let sts, _, _, _)? = try find(own) else { return fail("another service") }
        #expect(all == "https://host:1" && sts == "http://host:2")
    }

    /// The token would go over a network in the clear, and the keys come back so.
    @Test(arguments: [
        ("http", "127.0.0.1:80/a", true), ("http", "127.9.9.9/a", true), ("http", "[::1]:5/a", true),
        ("http", "localhost/a", true), ("http", "169.254.170.2/a", true), ("http", "169.254.170.23/a", true),
        ("http", "[fd00:ec2::23]/a", true), ("https", "example.com/a", true), ("http", "example.com/a", false),
        ("http", "169.254.169.254/a", false), ("http", "127.0.0.1.example.com/a", false), ("http", "[fd00:ec2::24]/a", false),
        ("http", "10.0.0.1/a", false), ("http", "localhost@example.com/a", false), ("ftp", "127.0.0.1/a", false),
    ])
    func plainHTTPIsForAddressesOfThisMachineOnly(scheme: String, address: String, isTaken: Bool) {
        do {
            _ = try find(["AWS_CONTAINER_CREDENTIALS_FULL_URI": "\(scheme)://\(address)"])
            #expect(isTaken)
        } catch {
            #expect(!isTaken && error.code == .permanent && error.message.contains("AWS_CONTAINER_CREDENTIALS_FULL_URI"))
        }
    }

    @Test(arguments: [
        ("127.0.0.1", true), ("127.255.1.2", true), ("::1", true), ("[::1]", true), ("LOCALHOST", true), ("localhost.", false),
        ("128.0.0.1", false), ("::2", false), ("127.1", false), ("localhost.example.com", false), ("", false),
    ])
    func loopbackIsWhatIsWrittenSo(host: String, isLoopback: Bool) {
        #expect(LocalHost.isLoopback(host) == isLoopback)
    }

    // MARK: What it says

    @Test func aMachineIsAskedWithATokenOnly() async throws {
        let script: ScriptedServer.Script = { request in
            if request.path == "/latest/api/token" { return reply(request.method == "PUT" ? "200 OK" : "405 No", [], "entry") }
            guard request.head.lowercased().contains("x-aws-ec2-metadata-token: entry") else { return reply("401 Unauthorized") }
            return reply("200 OK", [], request.path.hasSuffix("/role") ? Self.json : "role\n")
        }
        let (answer, server) = try await answer(["AWS_EC2_METADATA_SERVICE_ENDPOINT": "@/"], script)
        #expect(isKey(answer) && server.requests.count == 3)
    }

    @Test(arguments: ["403 Forbidden", "404 Not Found", "405 Method Not Allowed"])
    func aMachineThatGivesNoTokenHasNoKeys(status: String) async throws {
        let (answer, server) = try await answer(["AWS_EC2_METADATA_SERVICE_ENDPOINT": "@"], { _ in reply(status) })
        guard case .absent = answer else { return fail("\(answer)") }
        #expect(server.requests.count == 1, "it is not asked without a token")
    }

    @Test func nobodyAtTheAddressIsNoService() async throws {
        let port = DeafPort()
        defer { withExtendedLifetime(port) {} }
        let pool = BlockingPool(name: "test", threads: 1)
        defer { pool.stop() }
        let service = try KeyService(origin: .instance(server: "http://127.0.0.1:\(port.number)"), pool: pool)
        guard case .absent = await service.answer() else { return fail("there is an answer") }
    }

    @Test func aContainerIsAskedWithItsToken() async throws {
        let folder = try TemporaryFolder("keys")
        try folder.write("from the file\n", to: "token")
        let file = folder.string + "/token"
        let script: ScriptedServer.Script = { request in
            guard request.head.lowercased().contains("authorization: from the file") else { return reply("401 Unauthorized") }
            return reply("200 OK", [], request.path == "/v1/credentials" ? Self.json : "")
        }
        let variables = [
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": "@/v1/credentials", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": file,
        ]
        #expect(isKey(try await answer(variables, token: "from the environment", script).answer))
        let other = ["AWS_CONTAINER_CREDENTIALS_FULL_URI": "@/v1/credentials"]
        #expect(isKey(try await answer(other, token: "from the file", script).answer))
        guard case .failed(let error, isFinal: true) = try await answer(other, token: "wrong-word", script).answer else {
            return fail("a wrong token is taken")
        }
        #expect(error.code == .authenticate && error.message.contains("401") && !error.message.contains("wrong-word"))
    }

    @Test func aRoleIsAssumedWithTheTokenOfAFile() async throws {
        let folder = try TemporaryFolder("keys")
        try folder.write("a.b+c/d", to: "token")
        let file = folder.string + "/token"
        let variables = ["AWS_WEB_IDENTITY_TOKEN_FILE": file, "AWS_ROLE_ARN": "arn:aws:role/x", "AWS_ENDPOINT_URL_STS": "@"]
        let script: ScriptedServer.Script = { request in
            let isRight =
                request.method == "POST" && request.body.contains("Action=AssumeRoleWithWebIdentity&")
                && request.body.contains("RoleArn=arn%3Aaws%3Arole%2Fx&")
                && request.body.hasSuffix("WebIdentityToken=a.b%2Bc%2Fd")
            return isRight ? reply("200 OK", [], Self.xml) : reply("400 Bad Request")
        }
        let (answer, server) = try await answer(variables, script)
        #expect(isKey(answer) && server.requests.allSatisfy { !$0.lowercased().contains("authorization") })
    }

    @Test(arguments: [
        ("403 Forbidden", "AccessDenied", true), ("400 Bad Request", "IDPCommunicationError", false),
        ("500 Internal Server Error", "InternalFailure", false), ("429 Too Many Requests", "Throttling", false),
    ])
    func aRefusalIsOneSentenceWithoutSecrets(status: String, code: String, isFinal: Bool) async throws {
        let folder = try TemporaryFolder("keys")
        try folder.write("hidden", to: "token")
        let file = folder.string + "/token"
        let variables = ["AWS_WEB_IDENTITY_TOKEN_FILE": file, "AWS_ROLE_ARN": "r", "AWS_ENDPOINT_URL_STS": "@"]
        let body = "<ErrorResponse><Error><Code>\(code)</Code><Message>hidden is wrong</Message></Error></ErrorResponse>"
        let answer = try await answer(variables, { _ in reply(status, [], body) }).answer
        guard case .failed(let error, let found) = answer else { return fail("\(answer)") }
        #expect(found == isFinal && error.message.contains(code) && !error.message.contains("hidden"))
    }

    @Test(arguments: [
        "", "{}", "nonsense", #"{"AccessKeyId": "id"}"#, #"{"AccessKeyId": "id", "SecretAccessKey": "s", "Expiration": "soon"}"#,
        #"{"Code": "AssumeRoleUnauthorizedAccess", "Message": "hidden"}"#,
    ])
    func anAnswerWithoutAWholeKeyIsTrouble(body: String) async throws {
        let variables = ["AWS_CONTAINER_CREDENTIALS_FULL_URI": "@/"]
        guard case .failed(let error, isFinal: false) = try await answer(variables, { _ in reply("200 OK", [], body) }).answer
        else { return fail("it is taken") }
        #expect(error.code == .offline && !error.message.contains("hidden"))
    }

    // MARK: All together

    /// Keys that are good for a second, of a server that says so and takes each only as long.
    @Test func aBucketIsReadOnWhileKeysComeAndGo() async throws {
        let issued = Mutex((count: 0, valid: ""))
        let script: ScriptedServer.Script = { request in
            if request.path == "/keys" {
                let number = issued.withLock { issued in
                    issued.count += 1
                    issued.valid = "key\(issued.count)"
                    return issued.count
                }
                let text = #"{"AccessKeyId":"key\#(number)","SecretAccessKey":"s\#(number)","Token":"t\#(number)","#
                return reply("200 OK", [], text + #""Expiration":"2100-01-01T00:00:00Z"}"#)
            }
            let valid = issued.withLock { $0.valid }
            guard request.head.contains("Credential=\(valid)/"), request.head.contains("t\(valid.dropFirst(3))") else {
                return reply("400 Bad Request", [], "<Error><Code>ExpiredToken</Code></Error>")
            }
            return reply("200 OK", [], "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")
        }
        let server = ScriptedServer(script)
        defer { server.stop() }
        let address = "http://127.0.0.1:\(server.port)"
        let location = try S3Location(parsing: "s3://bucket/?endpoint=\(address)")
        let origin = KeyOrigin.container(server: address, target: "/keys", token: nil)
        let provider = try S3Provider(
            location: location, credentials: AccessKeySource(own: CredentialSource(), temporary: .success(origin)),
            stateFolder: nil, mayProbe: false, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let folder = ItemReference(identifier: ItemIdentifier("/"), path: [])
        _ = try await provider.enumerateItems(in: folder, page: nil)
        _ = try await provider.enumerateItems(in: folder, page: nil)
        #expect(issued.withLock { $0.count } == 1)
        // The server takes it back: nobody notices.
        issued.withLock { $0.valid = "none" }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { _ = try await provider.enumerateItems(in: folder, page: nil) } }
            try await group.waitForAll()
        }
        #expect(issued.withLock { $0.count } == 2)
    }

    @Test func aVariableThatCannotBeMeantIsToldOnlyWhereItMatters() throws {
        let wrong: Result<KeyOrigin?, ProviderError> = .failure(ProviderError(.permanent, "it is wrong"))
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        func make(_ options: String, _ key: AccessKey?) throws {
            _ = try S3Provider(
                location: try S3Location(parsing: Self.location + options),
                credentials: AccessKeySource(given: key, own: CredentialSource(), temporary: wrong), stateFolder: nil,
                logger: logger)
        }
        try make("", Self.key)
        try make("&anonymous=true", nil)
        #expect(throws: ProviderError.self) { try make("", nil) }
    }
}
