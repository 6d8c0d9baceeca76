import NIOHTTP1
import PromiseCore
import PromiseProvider
import PromiseS3
import Testing

/// The examples that AWS publishes.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html> and its Signature Version 4 test suite.
@Suite struct SignatureTests {
    private static let key = AccessKey(
        identifier: "AKIAIOSFODNN7EXAMPLE", secret: Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"))
    private static let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    /// 2013-05-24 00:00:00 UTC
    private static let time = Timestamp(seconds: 1_369_353_600, nanoseconds: 0)

    struct Example: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var method: HTTPMethod
        var path: String
        var query: [QueryItem] = []
        var headers: HTTPHeaders = [:]
        var payloadHash = SignatureTests.empty
        var signature: String
    }

    static let examples = [
        Example(
            testDescription: "GET of a range", method: .GET, path: "/test.txt", headers: ["Range": "bytes=0-9"],
            signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        Example(
            testDescription: "PUT", method: .PUT, path: "/test%24file.text",
            headers: ["Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"],
            payloadHash: "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
            signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        Example(
            testDescription: "GET of the lifecycle", method: .GET, path: "/", query: [QueryItem("lifecycle")],
            signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        Example(
            testDescription: "a listing", method: .GET, path: "/", query: [QueryItem("max-keys", "2"), QueryItem("prefix", "J")],
            signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ]

    /// Who signs, where and on which day may change while the key of the last request is known.
    @Test func theKeyOfAnotherRequestIsTakenOnlyForTheSame() {
        let keys = SigningKeys()
        let other = AccessKey(identifier: Self.key.identifier, secret: Secret("another"))
        let times = [Self.time, Timestamp(seconds: Self.time.seconds + 86_400, nanoseconds: 0)]
        for time in times + times {
            for (key, region) in [(Self.key, "us-east-1"), (other, "us-east-1"), (other, "eu"), (other, "eu")] {
                let signature = Signature(key: key, region: region)
                let headers: HTTPHeaders = ["Host": "host", "X-Amz-Date": Signature.timeText(time)]
                let known = signature.authorization(
                    .GET, path: "/", query: [], headers: headers, payloadHash: Self.empty, time: time, keys: keys)
                let fresh = signature.authorization(
                    .GET, path: "/", query: [], headers: headers, payloadHash: Self.empty, time: time)
                #expect(known == fresh)
            }
        }
    }

    @Test(arguments: examples) func aRequestToS3IsSignedAsPublished(example: Example) {
        var headers = example.headers
        headers.add(name: "Host", value: "examplebucket.s3.amazonaws.com")
        headers.add(name: "X-Amz-Date", value: Signature.timeText(Self.time))
        headers.add(name: "X-Amz-Content-Sha256", value: example.payloadHash)
        let authorization = Signature(key: Self.key, region: "us-east-1").authorization(
            example.method, path: example.path, query: example.query, headers: headers, payloadHash: example.payloadHash,
            time: Self.time)
        #expect(authorization.hasSuffix("Signature=\(example.signature)"), "\(authorization)")
        #expect(authorization.hasPrefix("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "))
    }

    /// Of the suite: `get-vanilla`, `get-vanilla-query-order-key-case`, `get-header-value-trim`, `post-vanilla`.
    static let suite = [
        Example(
            testDescription: "get-vanilla", method: .GET, path: "/",
            signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Example(
            testDescription: "get-vanilla-query-order-key-case", method: .GET, path: "/",
            query: [QueryItem("Param2", "value2"), QueryItem("Param1", "value1")],
            signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
        Example(
            testDescription: "get-header-value-trim", method: .GET, path: "/",
            headers: ["My-Header1": " value1", "My-Header2": " \"a   b   c\""],
            signature: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
        Example(
            testDescription: "post-vanilla", method: .POST, path: "/",
            signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    ]

    @Test(arguments: suite) func aRequestOfTheTestSuiteIsSignedAsPublished(example: Example) {
        let key = AccessKey(identifier: "AKIDEXAMPLE", secret: Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"))
        // 2015-08-30 12:36:00 UTC
        let time = Timestamp(seconds: 1_440_938_160, nanoseconds: 0)
        var headers = example.headers
        headers.add(name: "Host", value: "example.amazonaws.com")
        headers.add(name: "X-Amz-Date", value: "20150830T123600Z")
        #expect(Signature.timeText(time) == "20150830T123600Z")
        let authorization = Signature(key: key, region: "us-east-1", service: "service").authorization(
            example.method, path: example.path, query: example.query, headers: headers, payloadHash: Self.empty, time: time)
        #expect(authorization.hasSuffix("Signature=\(example.signature)"), "\(authorization)")
    }

    /// The example of <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html>.
    @Test func aLinkIsSignedAsAWSShowsIt() {
        let query = Signature(key: Self.key, region: "us-east-1").linkQuery(
            path: "/test.txt", host: "examplebucket.s3.amazonaws.com", time: Self.time, seconds: 86_400)
        #expect(
            query == "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2F"
                + "aws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature="
                + "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")
    }
}
