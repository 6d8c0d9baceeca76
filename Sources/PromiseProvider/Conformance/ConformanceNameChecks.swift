import PromiseCore

// Names are bytes: what Linux tells apart, a provider tells apart.

extension ConformanceSuite {
    private static let hostileNames: [(what: String, bytes: [UInt8])] = [
        ("invalid UTF-8", [0x66, 0xFF, 0xFE, 0x2E, 0x80]),
        ("another invalid UTF-8", [0x66, 0xFE, 0xFF, 0x2E, 0x80]),
        ("a newline", Array("one\ntwo".utf8)),
        ("a composed letter", [0xC3, 0xA9]),
        ("a decomposed letter", [0x65, 0xCC, 0x81]),
        ("255 bytes", [UInt8](repeating: 0x78, count: 255)),
        ("spaces at both ends", Array("  spaces  ".utf8)),
        ("quotes", Array("it's \"quoted\"".utf8)),
        ("a percent sign", Array("100%25 %2F%00".utf8)),
        ("a leading dot", Array(".hidden".utf8)),
        ("a trailing dot", Array("trailing.".utf8)),
        ("a backslash", Array("back\\slash".utf8)),
        ("lower case", Array("case".utf8)),
        ("upper case", Array("CASE".utf8)),
        ("signs of shells and URLs", Array("*?<>|:;&$`#[]{}~+=@!".utf8)),
        ("control characters", [0x01, 0x09, 0x1B, 0x7F]),
        ("a long extension in Chinese", Array("文件.文档".utf8)),
    ]

    static let nameChecks: [ConformanceCheck] =
        hostileNames.map { name in
            ConformanceCheck("a name with \(name.what)") { context in
                let fileName = FileName(trusted: name.bytes)
                let made = try await context.makeFile(fileName, name.bytes)
                try context.require(made.name == fileName, "create returns the name '\(made.name.display)'")
                try context.require(try await context.list().map(\.name) == [fileName], "the listing does not have the name")
                let seen = try await context.provider.item(for: context.reference(made))
                try await context.checkContent(seen, is: name.bytes)
                let other = FileName(trusted: Array("renamed".utf8))
                let moved = try await context.provider.modify(
                    context.reference(seen), changes: ItemChanges(place: (context.folder, other)), contents: nil, baseVersion: nil
                )
                let back = try await context.provider.modify(
                    context.reference(moved), changes: ItemChanges(place: (context.folder, fileName)), contents: nil,
                    baseVersion: nil)
                try context.require(back.name == fileName, "the name is not kept by a rename")
                try await context.provider.delete(context.reference(back), baseVersion: back.version)
                try context.require(try await context.list().isEmpty, "the file is still listed after it was deleted")
            }
        } + [
            ConformanceCheck("all these names side by side") { context in
                for name in hostileNames { _ = try await context.makeFile(FileName(trusted: name.bytes), name.bytes) }
                let items = try await context.list()
                let expected = Set(hostileNames.map { FileName(trusted: $0.bytes) })
                try context.require(
                    Set(items.map(\.name)) == expected, "not every name is there: \(items.count) of \(expected.count)")
                try context.require(Set(items.map(\.identifier)).count == items.count, "two names have one identifier")
                for item in items { try await context.checkContent(item, is: item.name.bytes) }
            }
        ]
}
