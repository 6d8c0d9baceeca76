import Glibc
import PromiseProvider
import PromiseTestSupport
import Testing

/// Secrets come from a file that is its owner's alone, and are shown nowhere.
struct CredentialTests {
    private let text = """
        # the cloud at work
        [work]
        user = ann
        password = with = signs and spaces

        [example.com:8443]
        token=abc
        [example.com]
        password = other
        """

    private func source(_ folder: TemporaryFolder, mode: UInt32 = 0o600, _ names: [String]) throws -> CredentialSource {
        try folder.write(text, to: "credentials")
        #expect(chmod(folder.string + "/credentials", mode) == 0)
        return CredentialSource(file: Array((folder.string + "/credentials").utf8), names: names, user: "bob")
    }

    @Test func theBestEntryIsTaken() throws {
        let folder = try TemporaryFolder("credentials")
        let password = Secret("with = signs and spaces")
        #expect(try source(folder, ["work", "example.com"]).credentials() == .password(user: "ann", password))
        #expect(try source(folder, ["none", "example.com:8443"]).credentials() == .token(Secret("abc")))
        #expect(try source(folder, ["example.com"]).credentials() == .password(user: "bob", Secret("other")))
        #expect(try source(folder, ["elsewhere"]).credentials() == nil)
    }

    @Test func aFileFromWindowsIsRead() throws {
        let entries = try CredentialsFile.parse("[work]\r\nuser = ann\r\npassword = p w\r\n", shown: "the file")
        #expect(entries["work"]?.user == "ann" && entries["work"]?.password == "p w")
    }

    /// Whoever starts the provider asks the desktop for it; without that there is a sentence, and never an empty password.
    @Test func aPasswordInTheSecretServiceIsNotLookedForInTheFile() throws {
        let text = "[work]\nuser = ann\nsecret-service = true\n[home]\nsecret-service = false\npassword = p\nuser = ann\n"
        let entries = try CredentialsFile.parse(text, shown: "the file")
        #expect(entries["work"]?.isInSecretService == true && entries["work"]?.password == nil)
        #expect(entries["home"]?.isInSecretService == false && entries["home"]?.password == "p")
    }

    @Test func theEnvironmentWins() throws {
        let folder = try TemporaryFolder("credentials")
        var source = try source(folder, ["work"])
        source.given = .token(Secret("given"))
        #expect(try source.credentials() == .token(Secret("given")))
    }

    @Test(arguments: [0o644, 0o640, 0o604, 0o620] as [UInt32]) func aFileThatOthersMayReadIsRefused(mode: UInt32) throws {
        let folder = try TemporaryFolder("credentials")
        let source = try source(folder, mode: mode, ["work"])
        do {
            _ = try source.credentials()
            Issue.record("it was taken")
        } catch {
            #expect("\(error)".contains("chmod 0600"))
        }
    }

    @Test func noFileIsNoCredentials() throws {
        #expect(try CredentialSource(file: Array("/nowhere/credentials".utf8), names: ["work"]).credentials() == nil)
    }

    @Test(arguments: ["user = x", "[a]\nnonsense", "[a]\nsecret = tops3cret"]) func aBadLineIsNamedAndNotShown(text: String) {
        do {
            _ = try CredentialsFile.parse(text, shown: "the file")
            Issue.record("it was taken")
        } catch {
            #expect(error.message.contains("line") && !error.message.contains("tops3cret"))
        }
    }

    @Test func aSecretPrintsAsNothing() {
        let secret = Secret("tops3cret")
        var dumped = ""
        dump(Credentials.password(user: "u", secret), to: &dumped)
        for text in ["\(secret)", "\(Credentials.token(secret))", String(reflecting: secret), dumped] {
            #expect(!text.contains("tops3cret"))
        }
    }
}
