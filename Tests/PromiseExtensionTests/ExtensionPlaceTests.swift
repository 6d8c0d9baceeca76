import Logging
import PromiseCore
import PromiseExtension
import PromiseProvider
import PromiseTestSupport
import Testing

/// Extensions whose items have no identifiers: they are asked by paths, and say of an item what is at its place.
@Suite(.timeLimit(.minutes(5))) struct ExtensionPlaceTests {
    private let folder = ItemReference(identifier: ItemIdentifier("engine's"), path: [FileName("a b")!])
    private let file = ItemReference(identifier: ItemIdentifier("engine's too"), path: [FileName("a b")!, FileName("c")!])

    private func said(_ name: String, _ kind: String = "file") -> String {
        "{\"name\": \"\(name)\", \"kind\": \"\(kind)\", \"size\": 4, \"version\": \"1\"}"
    }

    private func withPlaces(
        _ script: @escaping ScriptedExtension.Script, _ body: (ExtensionProvider, ScriptedExtension) async throws -> Void
    ) async throws {
        try await withExtension(capabilities: "\"place-identifiers\"", script, body)
    }

    @Test func aListingNeedsNeitherIdentifiersNorParents() async throws {
        let script: ScriptedExtension.Script = { _ in
            reply("200 OK", "{\"items\": [\(said("c")), \(said("d", "folder")), \(said("e%2Ff")), \(said("c"))]}")
        }
        try await withPlaces(script) { provider, server in
            let items = try await provider.enumerateItems(in: folder, page: nil).items
            #expect(items.map(\.name.display) == ["c", "d"])
            #expect(items.allSatisfy { $0.parent == folder.identifier })
            #expect(Set(items.map(\.identifier)).count == 2)
            #expect(server.requests.last?.path == "items/%2Fa%2520b/children")
        }
    }

    @Test func anItemIsAskedForByItsPathAndMustHaveItsName() async throws {
        try await withPlaces({ _ in reply("200 OK", said("c")) }) { provider, server in
            let item = try await provider.item(for: file)
            #expect(item.name.display == "c")
            #expect(server.requests.last?.path == "items/%2Fa%2520b%2Fc")
            let found = await error { _ = try await provider.item(for: folder) }
            #expect(found?.code == .permanent && found?.message.contains("another item") == true)
        }
    }

    @Test func aMoveNamesTheNewFolderByItsPath() async throws {
        try await withPlaces({ _ in reply("200 OK", said("x")) }) { provider, server in
            let root = ItemReference(identifier: ItemIdentifier("1"), path: [])
            let changes = ItemChanges(place: (root, FileName("x")!))
            let item = try await provider.modify(file, changes: changes, contents: nil, baseVersion: ContentVersion("1"))
            #expect(item.parent == root.identifier && item.name.display == "x")
            #expect(server.requests.last?.path == "items/%2Fa%2520b%2Fc?version=1&parent=%2F&name=x")
        }
    }

    /// Or one folder's state would be taken for another's, and all that is missing there for deleted.
    @Test func aRootWithoutAnIdentifierIsKnownByTheExtensionsName() async throws {
        let server = try ScriptedExtension { request in
            request.path == "root"
                ? reply("200 OK", "{\"name\": \"x\", \"kind\": \"folder\"}")
                : reply("200 OK", "{\"capabilities\": [\"place-identifiers\"]}")
        }
        defer { server.stop() }
        let provider = try ExtensionProvider(
            location: try ExtensionLocation(parsing: "extension:" + server.path), credentials: CredentialSource(),
            stateFolder: nil, logger: .init(label: "test"))
        let root = try await provider.root()
        #expect(root.identifier.rawValue == provider.name)
    }

    @Test(arguments: ["stable-identifiers", "change-feed"])
    func whatNeedsIdentifiersCannotBeDeclaredToo(other: String) async throws {
        let capabilities = "\"place-identifiers\", \"\(other)\""
        let found = await error {
            try await withExtension(capabilities: capabilities, { _ in reply("404 Not Found") }) { _, _ in }
        }
        #expect(found?.message.contains("declares \(other) with place-identifiers") == true)
    }
}
