// swift-tools-version: 6.1
import PackageDescription

// PromiseKit alone, as the package libpromisekit-dev installs it: a program has it by
// `.package(path: "/usr/share/promisekit")`.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
    name: "promisekit",
    products: [.library(name: "PromiseKit", targets: ["PromiseKit"])],
    dependencies: [
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    ],
    targets: [
        .target(name: "PromiseCore", swiftSettings: strict),
        .target(name: "PromiseWire", swiftSettings: strict),
        .systemLibrary(name: "CAttributes", path: "Sources/CAttributes"),
        .systemLibrary(name: "CZlib", path: "Sources/CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .target(
            name: "PromiseKit",
            dependencies: [
                "PromiseCore", "PromiseWire", "CAttributes", "CZlib", .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ], swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)
