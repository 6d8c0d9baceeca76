import Glibc
import PromiseCore
import PromiseProvider
import PromiseSystem
import PromiseTestSupport
import Testing

/// Something lies among the private objects and is larger than one may be.
@Suite struct LargeObjectTests {
    private let size = PrivateObject.byteCountMax + 5

    /// It could neither be read nor removed.
    @Test func itComesWholeAndIsRemovedInTheVersionThatCame() async throws {
        let fixture = try await FolderFixture("large-object")
        let provider: any Provider = fixture.provider
        let objects = try #require(provider.privateObjects)
        let name = try #require(PrivateName(.values, "com.example.large.json"))
        let version = try await objects.write([1], to: name, base: nil)
        let place = fixture.folder.path(".promisefs/values/com.example.large.json")
        try truncateFile(place, to: size)
        await #expect(throws: ProviderError.self) { try await objects.read(name) }
        await #expect(throws: ProviderError.self) { try await objects.delete(name, base: version) }
        let copy = fixture.folder.path("copy")
        let file = SharedDescriptor(try Descriptor.open(copy, flags: O_WRONLY | O_CREAT, label: "test"))
        let large = try #require(try await objects.fetchTooLarge(name, into: FileSink(file)))
        #expect(try FileStatus.of(copy, label: "test").size == size)
        try truncateFile(place, to: size + 1)
        await #expect(throws: ProviderError.self) { try await objects.delete(name, base: large) }
        let now = try #require(try await objects.fetchTooLarge(name, into: FileSink(file)))
        try await objects.delete(name, base: now)
        #expect(try await objects.read(name) == nil)
        #expect(try await objects.fetchTooLarge(name, into: FileSink(file)) == nil)
    }

    @Test func oneThatIsNotTooLargeIsNone() async throws {
        let fixture = try await FolderFixture("small-object")
        let provider: any Provider = fixture.provider
        let objects = try #require(provider.privateObjects)
        let name = try #require(PrivateName(.values, "com.example.small.json"))
        _ = try await objects.write([1], to: name, base: nil)
        let nowhere = SharedDescriptor(try Descriptor.open(Array("/dev/null".utf8), flags: O_WRONLY, label: "test"))
        #expect(try await objects.fetchTooLarge(name, into: FileSink(nowhere)) == nil)
    }
}
