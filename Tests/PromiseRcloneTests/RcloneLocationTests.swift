import PromiseProvider
import PromiseRclone
import Testing

/// What `rclone:REMOTE:PATH` means, and what rclone says.
struct RcloneLocationTests {
    private func parsed(_ name: String) -> String {
        do throws(ProviderError) {
            let location = try RcloneLocation(parsing: name) { () throws(ProviderError) in ["work", "two words"] }
            return "\(location.remote)|\(location.path)|\(location.lastName)"
        } catch {
            return error.message
        }
    }

    @Test func onePlaceHasOneName() throws {
        #expect(parsed("rclone:work:") == "work||work")
        #expect(parsed("rclone:work:a//b c/") == "work|a/b c|b c")
        // From the remote's own root, and not from where its user begins.
        #expect(parsed("rclone:work:/a/") == "work|/a|a")
        #expect(parsed("rclone:two words:ä:b") == "two words|ä:b|ä:b")
        #expect(try RcloneLocation(parsing: "rclone:work:a//b/").name == "rclone:work:a/b")
    }

    @Test func withoutARemoteTheSentenceListsThem() {
        for name in ["rclone:", "rclone:work", "rclone::", "rclone::local:/etc"] {
            #expect(parsed(name).contains("there are work:, two words:"), "\(name): \(parsed(name))")
        }
        let none = RcloneLocation.sentence([])
        #expect(none == "rclone has no remotes yet: make one by 'rclone config'")
    }

    @Test func whatCouldBeAnOptionOrHoldAPasswordIsRefused() {
        #expect(!parsed("rclone:work,pass=geheim:a").contains("geheim"))
        #expect(!parsed("rclone::sftp,pass=geheim:a").contains("geheim"))
        for name in ["rclone:-v:a", "rclone: work:a", "rclone:a/b:c", "rclone:work:a/../b", "rclone:work:a\nb"] {
            #expect(parsed(name).contains("write rclone:REMOTE:PATH"), "\(name): \(parsed(name))")
        }
    }

    @Test func itsConfigurationIsReadOrTheSentenceSaysWhyNot() throws {
        let plain = "2026/11/28 05:31:16 NOTICE: Config file \"/x:\" not found - using defaults\nwork:\ntwo words:\n"
        #expect(try RcloneProgram.remotes(in: plain, status: 0) == ["work", "two words"])
        let encrypted = "2026/11/28 05:31:16 Failed to load config file \"/x\": unable to decrypt configuration and not allowed "
            + "to ask for password - set RCLONE_CONFIG_PASS to your configuration password\n"
        let refusal = #expect(throws: ProviderError.self) { try RcloneProgram.remotes(in: encrypted, status: 1) }
        #expect(refusal?.code == .authenticate && refusal?.message.contains("is encrypted: set RCLONE_CONFIG_PASS") == true)
        let broken = #expect(throws: ProviderError.self) { try RcloneProgram.remotes(in: "2026/11/28 05:31:16 bad\n", status: 1) }
        #expect(broken?.message == "rclone cannot read its configuration: bad")
    }

    @Test func whereItListensIsInItsLog() {
        let old = "2026/11/28 05:31:15 NOTICE: Local file system at /x: WebDav Server started on http://127.0.0.1:41079/"
        let new = "2026/11/28 05:31:15 NOTICE: Local file system at /x: WebDav Server started on [http://127.0.0.1:41079/]"
        for line in [old, new] {
            #expect(RcloneWords.address(in: line) == "http://127.0.0.1:41079" && RcloneWords.isNotice(line))
        }
        // A remote's words: requests, with the password, went where they said.
        let error = "2026/11/28 05:31:15 ERROR : f: NOTICE: WebDav Server started on http://127.0.0.1:1/"
        #expect(!RcloneWords.isNotice(error))
        #expect(RcloneWords.address(in: "http://127.0.0.1:") == nil && RcloneWords.address(in: "nothing") == nil)
        #expect(RcloneWords.sentence("2026/11/28 05:31:15 Failed: a b") == "Failed: a b")
        #expect(RcloneWords.sentence("a b c") == "a b c")
    }
}
