import Foundation
import PromiseKit
import Testing

extension MountSuites {
    /// PromiseKit's `Document` of a folder that is one document.
    @Suite struct PackageTests {
        private struct Album: PackageContents {
            var files = FilePackage()

            init() {}
            init(package: FilePackage) throws { files = package }
            func package() throws -> FilePackage { files }
        }

        private func document(_ domain: MountedDomain) throws -> Document<Album> {
            let location = try Location.of(Array((domain.mount + "/album").utf8), in: MountTable.current())
            let client = PromiseClient(
                socketPath: domain.root + "/run/promisefs/\(domain.domainName).sock", domain: domain.domainName)
            return Document(location, client: client, contents: Album(), autosaveDelay: .seconds(3600))
        }

        private func eventually(_ what: String, _ condition: () async throws -> Bool) async throws {
            for _ in 0..<1500 {
                if try await condition() { return }
                try await Task.sleep(for: .milliseconds(20))
            }
            Issue.record("not in time: \(what)")
        }

        @Test(.timeLimit(.minutes(2))) func aSavedPackageStaysTheSameItemsAndOnlyChangesAreSent() async throws {
            try await MountedDomain.with { domain in
                let album = try document(domain)
                try await album.save(.creating)
                try await album.edit {
                    $0.files["index"] = Array("1".utf8)
                    $0.files["pictures/one"] = Array("light".utf8)
                    $0.files["pictures/two"] = Array("dark".utf8)
                }
                try await album.save()
                try await domain.shell("ln -s index \"$M/album/link\"; chmod 750 \"$M/album\"")
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
                let identity = """
                    for name in album album/index album/pictures album/pictures/one; do
                        getfattr --only-values -n user.promisefs.identifier "$M/$name"; echo
                    done; getfattr --only-values -n user.promisefs.version "$M/album/pictures/one"; stat -c %a "$M/album"
                    """
                let before = try await domain.shell(identity).text
                let sent = try await domain.status().bytesUploaded
                try await album.edit {
                    $0.files["index"] = Array("two".utf8)
                    $0.files["pictures/two"] = nil
                    $0.files["sounds/three"] = Array("loud".utf8)
                }
                try await album.close()
                try await domain.synchronize()
                #expect(try await domain.shell(identity).text == before)
                #expect(try await domain.status().bytesUploaded == sent + 7)
                try await domain.expectProviderEqualsMount()
                try await domain.shell(
                    """
                    [ "$(cd "$C"; find album | LC_ALL=C sort | tr '\\n' ' ')" = "album album/index album/link album/pictures \
                    album/pictures/one album/sounds album/sounds/three " ]
                    [ "$(cat "$C/album/index")" = two ]; [ "$(ls -A "$M")" = album ]
                    "$P" verify "$M"; [ "$("$P" pending --excluded --json "$M" | grep -c draft)" = 0 ]
                    """)
            }
        }

        /// Whoever looks into the folder, without coordination, sees one version of all its files.
        @Test(.timeLimit(.minutes(2))) func nobodySeesHalfOfASavedPackage() async throws {
            try await MountedDomain.with { domain in
                let album = try document(domain)
                try await album.save(.creating)
                try await album.edit { for name in ["a", "b/c", "d"] { $0.files[name] = Array("start".utf8) } }
                try await album.save()
                async let reader = domain.shell(
                    """
                    python3 - "$M/album" <<'END'
                    import os, sys, time
                    seen, end = set(), time.time() + 8
                    def read(folder, name):
                        with open(os.open(name, os.O_RDONLY, dir_fd=folder)) as file: return file.read()
                    while time.time() < end:
                        folder = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)
                        try: texts = [read(folder, name) for name in ("a", "b/c", "d")]
                        except FileNotFoundError: continue
                        finally: os.close(folder)
                        assert len(set(texts)) == 1, texts
                        seen.add(texts[0])
                    assert len(seen) > 5, seen
                    END
                    """)
                for number in 0..<40 {
                    try await album.edit { for name in ["a", "b/c", "d"] { $0.files[name] = Array("version \(number)".utf8) } }
                    try await album.save()
                    try await Task.sleep(for: .milliseconds(150))
                }
                _ = try await reader
                try await album.close()
                try await domain.synchronize()
                try await domain.expectProviderEqualsMount()
            }
        }

        @Test(.timeLimit(.minutes(2))) func aPackageIsFollowedOnAnotherMachineAndIsInConflictAsOne() async throws {
            var options = MountedDomain.Options()
            options.prepare = "mkdir -p \"$C/album/deep\"; echo 1 > \"$C/album/a\"; echo 1 > \"$C/album/deep/b\""
            try await MountedDomain.with(options) { domain in
                var others = MountedDomain.Options(arguments: ["--poll-interval", "1s"])
                others.cloud = domain.cloud
                try await MountedDomain.with(others) { other in
                    let (here, there) = (try document(domain), try document(other))
                    try await here.open()
                    try await there.open()
                    #expect(await there.contents.files["deep/b"] == Array("1\n".utf8))
                    try await here.edit {
                        $0.files["a"] = Array("2\n".utf8)
                        $0.files["deep/b"] = Array("2\n".utf8)
                        $0.files["c"] = Array("2\n".utf8)
                    }
                    try await here.save()
                    try await eventually("the other one has all of it") {
                        let files = await there.contents.files
                        return files.files.count == 3 && files.files.values.allSatisfy { $0 == Array("2\n".utf8) }
                    }
                    try await domain.synchronize()
                    try domain.setFaults(["offline=true"])
                    try await here.edit { $0.files["deep/b"] = Array("mine\n".utf8) }
                    try await here.save()
                    try await domain.shell("echo theirs > \"$C/album/deep/b\"")
                    try domain.setFaults([])
                    try await eventually("in conflict") { await here.state.contains(.inConflict) }
                    // The second version is no part of the document, and no save takes it away.
                    try await eventually("shows one of them") { await here.contents.files.files.count == 3 }
                    try await here.edit { $0.files["a"] = Array("3\n".utf8) }
                    try await here.save()
                    #expect(await here.state.contains(.inConflict))
                    try await domain.shell("[ \"$(ls \"$M/album/deep\" | wc -l)\" = 2 ]; \"$P\" verify \"$M\"")
                    try await here.close()
                    try await there.close()
                }
            }
        }

        @Test(.timeLimit(.minutes(2))) func openingAndSavingSayHowFarTheyAre() async throws {
            var options = MountedDomain.Options()
            options.prepare = "mkdir \"$C/album\"; head -c 5000000 /dev/zero > \"$C/album/a\"; echo 1 > \"$C/album/b\""
            try await MountedDomain.with(options) { domain in
                let album = try document(domain)
                try await album.open()
                #expect(album.progress == nil)
                try await album.edit { $0.files["a"] = [UInt8](repeating: 1, count: 3_000_000) }
                try await album.save()
                try await album.close()
                var (steps, ends): ([DocumentProgress], Int) = ([], 0)
                for await step in album.progressSteps {
                    if let step { steps.append(step) } else { ends += 1 }
                    if ends == 2 { break }
                }
                let reading = steps.filter { $0.stage == .reading }
                let writing = steps.filter { $0.stage == .writing }
                #expect(reading.count >= 5 && reading.allSatisfy { $0.total == 5_000_002 } && reading.last?.fraction == 1)
                #expect(writing.count >= 3 && writing.allSatisfy { $0.total == 3_000_002 } && writing.last?.fraction == 1)
                #expect(zip(reading, reading.dropFirst()).allSatisfy { $0.completed <= $1.completed })
                #expect(steps.contains { $0.stage == .waiting })
            }
        }
    }
}
