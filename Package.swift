// swift-tools-version: 6.1
import PackageDescription

/// Every target is Swift 6 with these on top; `make` adds warnings-as-errors for this package alone.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// C sources see the GNU names of glibc (`renameat2`, `statx`, `copy_file_range`).
let gnu: [CSetting] = [.define("_GNU_SOURCE")]

func module(_ name: String, path: String? = nil, _ dependencies: [Target.Dependency]) -> Target {
    .target(name: name, dependencies: dependencies, path: path, swiftSettings: strict)
}

/// Tests are compiled without optimization in release, too: what they test is optimized, and they take half the build else.
func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: strict + [.unsafeFlags(["-Onone"])])
}

/// A package of a distribution, or a build to try upgrades with, may have another.
let version = Context.environment["PROMISEFS_VERSION"] ?? "0.1.0"

let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")

let package = Package(
    name: "PromiseFS",
    products: [
        .executable(name: "promisefs", targets: ["promisefs"]),
        .executable(name: "promisefs-backing", targets: ["promisefs-backing"]),
        .executable(name: "promisefs-echo", targets: ["promisefs-echo"]),
        .executable(name: "promisefs-holder", targets: ["promisefs-holder"]),
        .library(name: "PromiseKit", targets: ["PromiseKit"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/LebJe/TOMLKit", from: "0.6.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // Values and the operating system.
        module("PromiseCore", []),
        .target(name: "CPromiseSystem", cSettings: gnu),
        .target(name: "CPromiseVersion", cSettings: [.define("PROMISEFS_VERSION", to: "\"\(version)\"")]),
        module("PromiseSystem", ["CPromiseSystem", "CPromiseVersion", "PromiseCore"]),
        module("PromiseQuery", []),
        module("PromiseCoordination", ["PromiseCore"]),
        module("PromiseKeyValue", ["PromiseCore"]),
        module("PromiseAccess", ["PromiseCore", "PromiseKeyValue", .product(name: "Crypto", package: "swift-crypto")]),
        // What is here, what is there, and what brings them together.
        .target(name: "CPromiseIndex"),
        module(
            "PromiseIndex",
            ["CPromiseIndex", "PromiseCore", "PromiseSystem", "PromiseQuery", .product(name: "GRDB", package: "GRDB.swift")]),
        module("PromiseContent", ["PromiseCore", "PromiseSystem", "PromiseIndex"]),
        module("PromiseProvider", ["PromiseCore", "PromiseSystem"]),
        module("PromiseFolder", ["PromiseCore", "PromiseSystem", "PromiseProvider", logging]),
        module(
            "PromiseHTTP",
            [
                "PromiseCore", "PromiseSystem", "PromiseProvider", "CExpat", logging,
                .product(name: "AsyncHTTPClient", package: "async-http-client"), .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"), .product(name: "NIOHTTP1", package: "swift-nio"), .product(name: "Crypto", package: "swift-crypto"),
            ]),
        module(
            "PromiseExtension",
            [
                "PromiseCore", "PromiseSystem", "PromiseProvider", "PromiseHTTP", "PromiseWire", logging,
                .product(name: "AsyncHTTPClient", package: "async-http-client"), .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ]),
        module(
            "PromiseWebDAV",
            [
                "PromiseCore", "PromiseSystem", "PromiseProvider", "PromiseHTTP", logging,
                .product(name: "AsyncHTTPClient", package: "async-http-client"), .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ]),
        module(
            "PromiseRclone",
            [
                "PromiseCore", "PromiseSystem", "PromiseProvider", "PromiseHTTP", "PromiseWebDAV", "PromiseExtension", logging,
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ]),
        module(
            "PromiseS3",
            [
                "PromiseCore", "PromiseSystem", "PromiseProvider", "PromiseHTTP", logging,
                .product(name: "AsyncHTTPClient", package: "async-http-client"), .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"), .product(name: "Crypto", package: "swift-crypto"),
            ]),
        module(
            "PromiseSync",
            [
                "PromiseCore", "PromiseSystem", "PromiseIndex", "PromiseContent", "PromiseProvider", logging,
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ]),
        module(
            "PromiseFilesystem",
            [
                "PromiseCore", "PromiseSystem", "PromiseCoordination", "PromiseKeyValue", "PromiseAccess", "PromiseIndex",
                "PromiseContent", "PromiseSync", logging,
            ]),
        // Libraries of the system.
        .systemLibrary(
            name: "CArchive", path: "Sources/CArchive", pkgConfig: "libarchive", providers: [.apt(["libarchive-dev"])]),
        .systemLibrary(name: "CExpat", path: "Sources/CExpat", pkgConfig: "expat", providers: [.apt(["libexpat1-dev"])]),
        .systemLibrary(name: "CAttributes", path: "Sources/CAttributes"),
        .systemLibrary(name: "CZlib", path: "Sources/CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        // Everything that speaks FUSE.
        .systemLibrary(name: "CFuse", path: "Mount/CFuse", pkgConfig: "fuse3", providers: [.apt(["libfuse3-dev"])]),
        .systemLibrary(name: "CUring", path: "Mount/CUring", pkgConfig: "liburing", providers: [.apt(["liburing-dev"])]),
        .target(
            name: "CFuseTransport", dependencies: ["CFuse", "CUring"], path: "Mount/CFuseTransport",
            cSettings: gnu + [.define("_FILE_OFFSET_BITS", to: "64")]),
        .executableTarget(name: "promisefs-backing", path: "Mount/BackingHelper", cSettings: gnu),
        .executableTarget(name: "promisefs-echo", path: "Mount/EchoHelper", cSettings: gnu),
        .executableTarget(
            name: "promisefs-locks", path: "Mount/LockHelper", cSettings: gnu,
            linkerSettings: [.linkedLibrary("pthread")]),
        .executableTarget(name: "promisefs-view", path: "Mount/ViewHelper", cSettings: gnu),
        .executableTarget(
            name: "promisefs-holder", dependencies: ["CPromiseSystem"], path: "Mount/Holder", cSettings: gnu),
        module(
            "PromiseMount", path: "Mount/PromiseMount",
            ["CFuse", "CFuseTransport", "PromiseCore", "PromiseSystem", "PromiseFilesystem", logging]),
        // One domain, and how programs reach it.
        module(
            "PromiseMigration",
            ["PromiseCore", "PromiseSystem", "PromiseKeyValue", "PromiseAccess", "PromiseProvider"]),
        module(
            "PromiseDomain",
            [
                "PromiseMigration",
                "PromiseCore", "PromiseSystem", "PromiseQuery", "PromiseCoordination", "PromiseKeyValue", "PromiseAccess",
                "PromiseIndex",
                "PromiseContent", "PromiseProvider", "PromiseHTTP", "PromiseFolder", "PromiseWebDAV", "PromiseS3",
                "PromiseExtension", "PromiseRclone", "PromiseSync", "PromiseFilesystem", "PromiseMount", "CArchive", logging,
            ]),
        module("PromiseWire", []),
        module(
            "PromiseControl",
            [
                "PromiseWire", "PromiseCore", "PromiseSystem", "PromiseQuery", "PromiseCoordination", "PromiseKeyValue",
                "PromiseAccess", "PromiseFilesystem", "PromiseDomain", "PromiseHTTP", logging, .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdCore", package: "hummingbird"), .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]),
        module(
            "PromiseKit",
            [
                "PromiseCore", "PromiseWire", "CAttributes", "CZlib", .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),
        module(
            "PromisePicker",
            [
                "PromiseCore", "PromiseSystem", "PromiseKit", "PromiseWire", .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),
        .executableTarget(
            name: "promisefs",
            dependencies: [
                "PromiseCore", "PromiseSystem", "PromiseFilesystem", "PromiseDomain", "PromiseControl", "PromiseKit",
                "PromiseMigration", "PromisePicker", "PromiseQuery",
                "PromiseWire", logging, .product(name: "TOMLKit", package: "TOMLKit"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            // The command line is the top of the house: its tests can only look inside. Nothing on a hot path is in it.
            swiftSettings: strict + [.unsafeFlags(["-enable-testing"])]),
        // The desktop's file dialogs: a program of its own, so that libsystemd is in no daemon.
        .systemLibrary(
            name: "CSystemBus", path: "Sources/CSystemBus", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        .executableTarget(
            name: "promisefs-portal", dependencies: ["CSystemBus"], path: "Sources/PromisePortal", swiftSettings: strict),
        // What an application looks like; built with the tests.
        .executableTarget(
            name: "notebook", dependencies: ["PromiseKit", "PromiseWire"], path: "Examples/Notebook", swiftSettings: strict),
        .executableTarget(
            name: "editor", dependencies: ["PromiseKit", "PromiseWire"], path: "Examples/Editor", swiftSettings: strict),
        .executableTarget(
            name: "scratch-extension",
            dependencies: [
                "PromiseWire", .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "NIOCore", package: "swift-nio"),
            ], path: "Examples/SwiftExtension", swiftSettings: strict),
        // Tests.
        .target(
            name: "PromiseTestSupport", dependencies: ["PromiseCore", "PromiseSystem", "PromiseProvider"],
            path: "Tests/PromiseTestSupport", swiftSettings: strict),
        tests("PromiseCoreTests", ["PromiseCore", "PromiseTestSupport"]),
        tests("PromiseSystemTests", ["PromiseCore", "PromiseSystem", "PromiseTestSupport"]),
        tests("PromiseQueryTests", ["PromiseQuery", "PromiseTestSupport"]),
        tests("PromiseKeyValueTests", ["PromiseCore", "PromiseKeyValue", "PromiseTestSupport"]),
        tests("PromiseAccessTests", ["PromiseCore", "PromiseKeyValue", "PromiseAccess", "PromiseTestSupport"]),
        tests("PromiseCoordinationTests", ["PromiseCore", "PromiseCoordination", "PromiseTestSupport"]),
        tests(
            "PromiseIndexTests",
            [
                "PromiseCore", "PromiseSystem", "PromiseQuery", "PromiseIndex", "PromiseTestSupport",
                .product(name: "GRDB", package: "GRDB.swift"),
            ]),
        tests("PromiseContentTests", ["PromiseCore", "PromiseSystem", "PromiseIndex", "PromiseContent", "PromiseTestSupport"]),
        tests(
            "PromiseFolderTests",
            ["PromiseCore", "PromiseSystem", "PromiseProvider", "PromiseFolder", "PromiseTestSupport", logging]),
        tests(
            "PromiseWebDAVTests",
            [
                "PromiseCore", "PromiseSystem", "PromiseProvider", "PromiseHTTP", "PromiseWebDAV", "PromiseTestSupport", logging,
                .product(name: "NIOCore", package: "swift-nio"),
            ]),
        tests(
            "PromiseS3Tests",
            [
                "PromiseCore", "PromiseSystem", "PromiseProvider", "PromiseHTTP", "PromiseS3", "PromiseTestSupport", logging,
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ]),
        tests(
            "PromiseExtensionTests",
            [
                "PromiseCore", "PromiseSystem", "PromiseProvider", "PromiseWire", "PromiseExtension", "PromiseTestSupport", logging,
            ]),
        tests("PromiseRcloneTests", ["PromiseProvider", "PromiseRclone", "PromiseSystem", "PromiseTestSupport", logging]),
        tests(
            "PromiseSyncTests",
            [
                "PromiseCore", "PromiseSystem", "PromiseIndex", "PromiseContent", "PromiseProvider", "PromiseSync",
                "PromiseTestSupport", logging,
            ]),
        tests(
            "PromiseFilesystemTests",
            [
                "PromiseCore", "PromiseAccess", "PromiseCoordination", "PromiseSystem", "PromiseIndex", "PromiseContent", "PromiseProvider",
                "PromiseSync", "PromiseFilesystem", "PromiseTestSupport", logging,
            ]),
        tests(
            "PromiseMountTests",
            ["CFuse", "CFuseTransport", "PromiseCore", "PromiseSystem", "PromiseFilesystem", "PromiseMount", logging]),
        tests(
            "PromiseControlTests",
            [
                "PromiseCore", "PromiseSystem", "PromiseQuery", "PromiseCoordination", "PromiseFilesystem", "PromiseDomain",
                "PromiseAccess", "PromiseIndex", "PromiseWire",
                "PromiseControl", "PromiseKit", "PromiseTestSupport", logging,
            ]),
        tests(
            "PromisePickerTests",
            [
                "PromisePicker", "PromiseKit",
            ]),
        tests(
            "CommandTests",
            [
                "promisefs", "PromiseCore", "PromiseSystem", "PromiseKit", "PromiseWire", logging,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        // Several machines, a hostile store and one seed, in one thread of one process.
        .target(name: "CSimulatedDisk", path: "Tests/SimulatedDisk"),
        .executableTarget(
            name: "simulate",
            dependencies: [
                "CSimulatedDisk", "PromiseCore", "PromiseSystem", "PromiseIndex", "PromiseContent", "PromiseProvider", "PromiseSync",
                "PromiseFilesystem", logging,
            ], path: "Tests/PromiseSimulation", swiftSettings: strict),
        tests("PromiseSimulationTests", ["simulate"]),
        // An application that says what it has saved, for the workload with two of them.
        .executableTarget(
            name: "document-program", dependencies: ["PromiseKit", "PromiseWire"], path: "Tests/DocumentProgram",
            swiftSettings: strict),
        tests("StyleTests", ["PromiseSystem"]),
        tests("MountTests", ["PromiseSystem", "PromiseKit", "PromiseWire", "PromiseTestSupport"]),
    ],
    swiftLanguageModes: [.v6]
)
