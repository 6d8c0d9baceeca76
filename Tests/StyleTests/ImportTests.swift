import Foundation
import Testing

/// Imports point only down, and what is dangerous has one importer. The table is the design's list of layers, from the
/// bottom up; a new import is a new line here, with its reason in ARCHITECTURE.md.
@Suite struct ImportTests {
    /// What any module but PromiseCore may use of the system.
    static let system: Set<String> = ["Glibc", "Synchronization"]

    static let allowed: [String: Set<String>] = [
        "PromiseCore": ["Collections", "OrderedCollections", "DequeModule", "HeapModule"],
        "PromiseSystem": ["CPromiseSystem", "CPromiseVersion", "PromiseCore"],
        "PromiseQuery": [],
        "PromiseKeyValue": ["PromiseCore"],
        // JSON as records have it.
        "PromiseAccess": ["PromiseCore", "PromiseKeyValue", "Crypto"],
        "PromiseCoordination": ["PromiseCore", "Collections", "OrderedCollections", "DequeModule"],
        "PromiseIndex": ["CPromiseIndex", "PromiseCore", "PromiseSystem", "PromiseQuery", "GRDB", "GRDBSQLite"],
        "PromiseContent": ["PromiseCore", "PromiseSystem", "PromiseIndex"],
        // Unicode's normal forms.
        "PromiseProvider": ["PromiseCore", "PromiseSystem", "Foundation"],
        "PromiseFolder": ["PromiseCore", "PromiseSystem", "PromiseProvider", "Logging", "FoundationEssentials"],
        "PromiseHTTP": [
            "PromiseCore", "PromiseSystem", "PromiseProvider", "Logging", "AsyncHTTPClient", "NIOCore", "NIOPosix", "NIOHTTP1",
            "NIOSSL",
            "Crypto", "Foundation", "FoundationEssentials", "CExpat",
        ],
        "PromiseS3": [
            "PromiseCore", "PromiseSystem", "PromiseProvider", "PromiseHTTP", "Logging", "AsyncHTTPClient", "NIOCore",
            "NIOHTTP1", "Crypto", "Foundation", "FoundationEssentials",
        ],
        "PromiseWebDAV": [
            "PromiseCore", "PromiseSystem", "PromiseProvider", "PromiseHTTP", "Logging", "AsyncHTTPClient", "NIOCore",
            "NIOHTTP1", "Foundation", "FoundationEssentials",
        ],
        "PromiseExtension": [
            "PromiseCore", "PromiseSystem", "PromiseProvider", "PromiseHTTP", "PromiseWire", "Logging", "AsyncHTTPClient",
            "NIOCore", "NIOHTTP1",
        ],
        "PromiseRclone": [
            "PromiseCore", "PromiseSystem", "PromiseProvider", "PromiseHTTP", "PromiseWebDAV", "PromiseExtension", "Logging",
            "NIOHTTP1", "FoundationEssentials",
        ],
        "PromiseSync": [
            "PromiseCore", "PromiseSystem", "PromiseIndex", "PromiseContent", "PromiseProvider", "Crypto",
            "DequeModule", "HeapModule", "Logging",
        ],
        "PromiseFilesystem": [
            "PromiseCore", "PromiseSystem", "PromiseCoordination", "PromiseKeyValue", "PromiseAccess", "PromiseIndex",
            "PromiseContent", "PromiseSync", "Logging",
        ],
        "PromiseMigration": [
            "PromiseCore", "PromiseSystem", "PromiseKeyValue", "PromiseAccess", "PromiseProvider",
        ],
        "PromiseMount": ["CFuse", "CFuseTransport", "PromiseCore", "PromiseSystem", "PromiseFilesystem", "Logging"],
        "PromiseDomain": [
            "PromiseCore", "PromiseSystem", "PromiseQuery", "PromiseCoordination", "PromiseKeyValue", "PromiseAccess",
            "PromiseIndex", "PromiseContent",
            "PromiseProvider", "PromiseHTTP", "PromiseFolder", "PromiseWebDAV", "PromiseS3", "PromiseExtension",
            "PromiseRclone", "PromiseSync", "PromiseFilesystem", "PromiseMount", "PromiseMigration", "CArchive", "Logging",
        ],
        "PromiseWire": ["FoundationEssentials"],
        "PromiseControl": [
            "PromiseWire", "PromiseCore", "PromiseSystem", "PromiseQuery", "PromiseCoordination", "PromiseFilesystem",
            "PromiseKeyValue", "PromiseAccess", "PromiseDomain", "PromiseHTTP", "Logging", "Hummingbird", "HummingbirdCore",
            "HTTPTypes", "NIOCore", "NIOHTTP1", "NIOPosix", "ServiceLifecycle", "Foundation", "FoundationEssentials",
        ],
        "PromiseKit": [
            "PromiseWire", "PromiseCore", "CAttributes", "CZlib", "Crypto",
            "AsyncHTTPClient", "NIOCore", "NIOPosix", "NIOHTTP1", "NIOFoundationCompat",
            "Foundation",
            "FoundationEssentials",
        ],
        "PromisePicker": [
            "PromiseWire", "PromiseCore", "PromiseSystem", "PromiseKit", "Crypto", "NIOCore", "NIOHTTP1", "NIOPosix",
        ],
        "PromisePortal": ["CSystemBus"],
        "promisefs": [
            "PromisePicker", "PromiseMigration", "PromiseQuery",
            "PromiseCore", "PromiseSystem", "PromiseFilesystem", "PromiseDomain", "PromiseControl", "PromiseKit", "PromiseWire",
            "Logging", "ArgumentParser", "TOMLKit", "Foundation", "FoundationEssentials", "Dispatch",
        ],
        "PromiseSimulation": [
            "CSimulatedDisk", "PromiseCore", "PromiseSystem", "PromiseIndex", "PromiseContent", "PromiseProvider", "PromiseSync",
            "PromiseFilesystem", "Logging",
        ],
        "DocumentProgram": ["PromiseKit", "PromiseWire"],
        "PromiseTestSupport": ["PromiseCore", "PromiseSystem", "PromiseProvider", "Foundation", "FoundationEssentials"],
    ]

    @Test func importsPointOnlyDown() {
        var problems: [String] = []
        for file in SourceTree.swiftFiles where !file.module.hasSuffix("Tests") {
            guard let allowed = Self.allowed[file.module] else {
                problems.append("\(file.path): module \(file.module) has no line in the table of allowed imports; add one")
                continue
            }
            let isPure = ["PromiseCore", "PromiseQuery", "PromiseKeyValue", "PromiseAccess"].contains(file.module)
            let system = isPure ? [] : Self.system
            for (line, name) in imports(of: file) where !allowed.contains(name) && !system.contains(name) {
                problems.append(
                    "\(file.path):\(line): \(file.module) may not import \(name); move the code to a layer that may, "
                        + "or pass in what it needs from above")
            }
        }
        report(problems)
    }

    @Test(arguments: [
        (imported: "GRDB", by: "Sources/PromiseIndex/", tests: "Tests/PromiseIndexTests/"),
        (imported: "GRDBSQLite", by: "Sources/PromiseIndex/", tests: "Tests/PromiseIndexTests/"),
        (imported: "CSystemBus", by: "Sources/PromisePortal/", tests: "Tests/none/"),
        (imported: "CFuse", by: "Mount/", tests: "Tests/PromiseMountTests/"),
        (imported: "CFuseTransport", by: "Mount/", tests: "Tests/PromiseMountTests/"),
    ])
    func onlyOneModuleImports(imported: String, by folder: String, tests: String) {
        var problems: [String] = []
        for file in SourceTree.swiftFiles where !file.path.hasPrefix(folder) && !file.path.hasPrefix(tests) {
            for (line, name) in imports(of: file) where name == imported {
                problems.append("\(file.path):\(line): only files in \(folder) import \(imported); ask that module instead")
            }
        }
        report(problems)
    }

    /// Tests see what the modules above them see: a test that needs `@testable` tests an internal.
    @Test func testsNeedNoTestableImport() {
        report(
            // The command line has nothing above it; its target alone is built with testability.
            SourceTree.swiftFiles.filter { !$0.path.hasPrefix("Tests/CommandTests/") }.flatMap { file in
                file.code.enumerated().filter { $0.element.contains("@test" + "able import") }.map {
                    "\(file.path):\($0.offset + 1): release builds have no testability; give the symbol `package` access"
                }
            })
    }

    /// A type of glibc belongs to the Glibc module or to a module of C that includes its header, whichever the compiler meets
    /// first: what compiles on one machine has a warning or an error on another.
    @Test func noInterfaceNamesTypesOfGlibc() {
        report(
            SourceTree.swiftFiles.flatMap { file in
                file.code.enumerated().filter {
                    ["package import Glibc", "public import Glibc"].contains($0.element.trimmingCharacters(in: .whitespaces))
                }.map { "\(file.path):\($0.offset + 1): name Int32 or UInt32 in the declaration, and import Glibc plainly" }
            })
    }

    private func imports(of file: SourceTree.SwiftFile) -> [(line: Int, name: String)] {
        let levels: Set<Substring> = ["public", "package", "internal", "fileprivate", "private", "@preconcurrency", "@_exported"]
        let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"]
        var result: [(line: Int, name: String)] = []
        for (index, line) in file.code.enumerated() {
            var words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })[...]
            while let word = words.first, levels.contains(word) { words = words.dropFirst() }
            guard words.first == "import" else { continue }
            words = words.dropFirst()
            if let word = words.first, kinds.contains(word) { words = words.dropFirst() }
            if let name = words.first { result.append((index + 1, String(name.prefix { $0 != "." }))) }
        }
        return result
    }
}

/// One failure that lists every place, so that a run shows all there is to mend.
func report(_ problems: [String], _ location: SourceLocation = #_sourceLocation) {
    guard !problems.isEmpty else { return }
    Issue.record("\(problems.count) place(s):\n\(problems.joined(separator: "\n"))", sourceLocation: location)
}
