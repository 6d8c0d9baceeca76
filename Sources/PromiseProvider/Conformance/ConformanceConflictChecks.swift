import PromiseCore

// Nothing is overwritten that the provider was not told to overwrite.

extension ConformanceSuite {
    static let conflictChecks: [ConformanceCheck] = [
        ConformanceCheck("creating on a taken name is a conflict") { context in
            let file = try await context.makeFile("taken", [1])
            try await context.expect(.conflict, "creating a file on a file's name") {
                _ = try await context.makeFile("taken", [2])
            }
            try await context.expect(.conflict, "creating a folder on a file's name") {
                _ = try await context.makeFolder("taken")
            }
            try context.require(try await context.list() == [file], "the file that was there changed")
            try await context.checkContent(file, is: [1])
            _ = try await context.makeFolder("folder")
            try await context.expect(.conflict, "creating a folder on a folder's name") {
                _ = try await context.makeFolder("folder")
            }
        },
        ConformanceCheck("renaming to a taken name is a conflict") { context in
            let taken = try await context.makeFile("taken", [1])
            let made = try await context.makeFile("file", [2])
            try await context.expect(.conflict, "renaming to a taken name") {
                _ = try await context.provider.modify(
                    context.reference(made), changes: ItemChanges(place: (context.folder, taken.name)), contents: nil,
                    baseVersion: made.version)
            }
            try await context.checkContent(taken, is: [1])
            try await context.checkContent(made, is: [2])
        },
        ConformanceCheck("modifying an old version is a conflict") { context in
            let made = try await context.makeFile("file", [1])
            let second = try await context.provider.modify(
                context.reference(made), changes: ItemChanges(), contents: try context.source([2, 2]), baseVersion: made.version)
            try await context.expect(.conflict, "modifying a version that was replaced") {
                _ = try await context.provider.modify(
                    context.reference(made), changes: ItemChanges(), contents: try context.source([3, 3, 3]),
                    baseVersion: made.version)
            }
            try await context.checkContent(second, is: [2, 2])
        },
        ConformanceCheck("large content replaces only its base version") { context in
            let made = try await context.makeFile("file", [1])
            let large = [UInt8](repeating: 7, count: 5 << 20)
            let second = try await context.provider.modify(
                context.reference(made), changes: ItemChanges(), contents: try context.source(large), baseVersion: made.version)
            try await context.expect(.conflict, "replacing a version that was replaced") {
                _ = try await context.provider.modify(
                    context.reference(made), changes: ItemChanges(), contents: try context.source(large + [8]),
                    baseVersion: made.version)
            }
            try await context.checkContent(second, is: large)
        },
        ConformanceCheck("moving an old version or changing its mode is a conflict", needs: .conditionalWrite) { context in
            let made = try await context.makeFile("file", [1])
            let second = try await context.provider.modify(
                context.reference(made), changes: ItemChanges(), contents: try context.source([2, 2]), baseVersion: made.version)
            let moved = ItemChanges(place: (context.folder, FileName(trusted: Array("moved".utf8))))
            for changes in [moved, ItemChanges(metadata: ConformanceContext.metadata)] {
                try await context.expect(.conflict, "changing a version that was replaced") {
                    _ = try await context.provider.modify(
                        context.reference(made), changes: changes, contents: nil, baseVersion: made.version)
                }
            }
            try context.require(try await context.list().map(\.name) == [made.name], "the file was moved")
            try await context.checkContent(second, is: [2, 2])
        },
        ConformanceCheck("deleting an old version is a conflict") { context in
            let made = try await context.makeFile("file", [1])
            let second = try await context.provider.modify(
                context.reference(made), changes: ItemChanges(), contents: try context.source([2, 2]), baseVersion: made.version)
            try await context.expect(.conflict, "deleting a version that was replaced") {
                try await context.provider.delete(context.reference(made), baseVersion: made.version)
            }
            try await context.checkContent(second, is: [2, 2])
        },
        ConformanceCheck("modifying what is gone is not found") { context in
            let made = try await context.makeFile("file", [1])
            try await context.provider.delete(context.reference(made), baseVersion: nil)
            try await context.expect(.notFound, "modifying a deleted file") {
                _ = try await context.provider.modify(
                    context.reference(made), changes: ItemChanges(), contents: try context.source([2]), baseVersion: made.version)
            }
            try context.require(try await context.list().isEmpty, "the deleted file is back")
        },
        ConformanceCheck("another item at the same path is left alone", needs: .stableIdentifiers) { context in
            let first = try await context.makeFile("file", [1])
            try await context.provider.delete(context.reference(first), baseVersion: nil)
            let second = try await context.makeFile("file", [2])
            try context.require(second.identifier != first.identifier, "an identifier was given to a second item")
            try await context.provider.delete(context.reference(first), baseVersion: nil)
            try await context.expect(.notFound, "looking at the deleted item by its old path") {
                _ = try await context.provider.item(for: context.reference(first))
            }
            try await context.checkContent(second, is: [2])
        },
        ConformanceCheck("of concurrent creates of one name one wins") { context in
            let winners = await withTaskGroup(of: [UInt8]?.self) { group in
                for index in 0..<16 {
                    group.addTask { (try? await context.makeFile("one", [UInt8(index)])).map { _ in [UInt8(index)] } }
                }
                return await group.reduce(into: [[UInt8]]()) { winners, bytes in if let bytes { winners.append(bytes) } }
            }
            try context.require(winners.count == 1, "\(winners.count) creates were done")
            let items = try await context.list()
            try context.require(items.count == 1, "\(items.count) items are listed")
            try await context.checkContent(items[0], is: winners[0])
        },
        ConformanceCheck("concurrent creates of many names all succeed") { context in
            let failures = await withTaskGroup(of: String?.self) { group in
                for index in 0..<32 {
                    group.addTask {
                        do {
                            _ = try await context.makeFile("file-\(index)", [UInt8(index)])
                            return nil
                        } catch {
                            return "\(error)"
                        }
                    }
                }
                return await group.reduce(into: [String]()) { failures, sentence in if let sentence { failures.append(sentence) }
                }
            }
            try context.require(failures.isEmpty, "\(failures.count) failed: \(failures.first ?? "")")
            for item in try await context.list() {
                let number = UInt8(item.name.display.dropFirst(5)) ?? .max
                try await context.checkContent(item, is: [number])
            }
        },
        ConformanceCheck("of concurrent modifications of one version one wins", needs: .conditionalWrite) { context in
            let made = try await context.makeFile("file", [0])
            let winners = await withTaskGroup(of: Item?.self) { group in
                for index in 1...16 {
                    group.addTask {
                        guard let source = try? context.source([UInt8](repeating: UInt8(index), count: index)) else { return nil }
                        return try? await context.provider.modify(
                            context.reference(made), changes: ItemChanges(), contents: source, baseVersion: made.version)
                    }
                }
                return await group.reduce(into: [Item]()) { winners, item in if let item { winners.append(item) } }
            }
            try context.require(winners.count == 1, "\(winners.count) modifications of one version were done")
            try await context.checkContent(
                winners[0], is: [UInt8](repeating: UInt8(winners[0].size), count: Int(winners[0].size)))
        },
    ]
}
