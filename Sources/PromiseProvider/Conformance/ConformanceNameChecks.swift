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

    /// Names that some file systems take for one.
    private static let twins: [(what: String, bytes: [[UInt8]])] = [
        ("a composed and a decomposed letter", [[0xC3, 0xA9], [0x65, 0xCC, 0x81]]),
        ("lower and upper case", [Array("case".utf8), Array("CASE".utf8)]),
    ]

    private static let twinChecks: [ConformanceCheck] = twins.map { twin in
        ConformanceCheck("\(twin.what) are two names") { context in
            let names = twin.bytes.map { FileName(trusted: $0) }
            let first = try await context.makeFile(names[0], twin.bytes[0])
            let content = try context.source(twin.bytes[1])
            do throws(ProviderError) {
                _ = try await context.provider.create(
                    NewItem(name: names[1], kind: .file, metadata: ConformanceContext.metadata), in: context.folder,
                    contents: content)
            } catch {
                guard error.code == .conflict || error.code == .refused else { throw error }
                try await context.checkContent(first, is: twin.bytes[0])
                try context.require(try await context.list().map(\.name) == [names[0]], "what was refused left something")
                throw ConformanceLack("the storage takes them for one, and refuses the second")
            }
            let items = try await context.list()
            try context.require(Set(items.map(\.name)) == Set(names), "not both names are there: \(items.count) of 2")
            for item in items { try await context.checkContent(item, is: item.name.bytes) }
        }
    }

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
                // Of what may be one name to a storage, one: the others have checks of their own.
                let names = hostileNames.map(\.bytes).filter { name in !twins.contains { $0.bytes[1] == name } }
                for name in names { _ = try await context.makeFile(FileName(trusted: name), name) }
                let items = try await context.list()
                let expected = Set(names.map { FileName(trusted: $0) })
                try context.require(
                    Set(items.map(\.name)) == expected, "not every name is there: \(items.count) of \(expected.count)")
                try context.require(Set(items.map(\.identifier)).count == items.count, "two names have one identifier")
                for item in items { try await context.checkContent(item, is: item.name.bytes) }
            }
        ] + twinChecks
}
