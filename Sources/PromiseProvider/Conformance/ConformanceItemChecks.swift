import PromiseCore

// Items as such: made, listed, changed, moved, removed.

extension ConformanceSuite {
    static let itemChecks: [ConformanceCheck] = [
        ConformanceCheck("a file is made, looked at and read") { context in
            let bytes = Array("hello".utf8)
            let made = try await context.makeFile("file.txt", bytes)
            try context.require(
                made.kind == .file && made.size == 5 && made.name == FileName("file.txt"),
                "what create returns is not what was made")
            try context.require(made.parent == context.folder.identifier, "the file's parent is not the folder it was made in")
            let seen = try await context.provider.item(for: context.reference(made))
            try context.require(
                seen.identifier == made.identifier && seen.version == made.version,
                "the item looks different from what create returned")
            try await context.checkContent(made, is: bytes)
        },
        ConformanceCheck("a folder is made and listed") { context in
            let made = try await context.makeFolder("folder")
            try context.require(made.kind == .folder && made.size == 0, "what create returns is no folder of size 0")
            try context.require(
                try await context.list().map(\.identifier) == [made.identifier], "the folder is not listed, or not alone")
            try context.require(try await context.list(context.reference(made)).isEmpty, "a new folder is not empty")
        },
        SealedFolderCheck.check,
        PersistentIdentifierCheck.check,
        ConformanceCheck("a listing holds every item once") { context in
            var made: Set<ItemIdentifier> = []
            for index in 0..<120 { made.insert(try await context.makeFile("file-\(index)", []).identifier) }
            let listed = try await context.list()
            try context.require(listed.count == 120, "120 items were made and \(listed.count) are listed")
            try context.require(
                Set(listed.map(\.identifier)) == made, "the identifiers listed are not those that create returned")
        },
        ConformanceCheck("a listed item equals the item asked for") { context in
            _ = try await context.makeFile("file", [1, 2, 3])
            _ = try await context.makeFolder("folder")
            for item in try await context.list() {
                let seen = try await context.provider.item(for: context.reference(item))
                try context.require(seen == item, "'\(item.name.display)' is listed differently from how it is looked at")
            }
        },
        ConformanceCheck("a picture is kept of one version of an item", needs: .thumbnails) { context in
            let made = try await context.makeFile("file", [1, 2, 3])
            let reference = context.reference(made)
            func picture(of version: ContentVersion) async throws -> [UInt8]? {
                try await context.provider.fetchThumbnail(of: reference, version: version, size: 1024)
            }
            try context.require(try await picture(of: made.version) == nil, "there is a picture before one was kept")
            for bytes: [UInt8] in [[7, 7], Array(repeating: 9, count: 300_000)] {
                try await context.provider.saveThumbnail(bytes, of: reference, version: made.version)
                let seen = try await picture(of: made.version)
                try context.require(seen == bytes, "the picture is not the one that was kept last")
            }
            let contents = try context.source([4, 5, 6, 7])
            let changed = try await context.provider.modify(
                reference, changes: ItemChanges(), contents: contents, baseVersion: made.version)
            try context.require(try await picture(of: changed.version) == nil, "a new version has the picture of the old one")
            try await context.expect(.conflict, "keeping a picture of an old version") {
                try await context.provider.saveThumbnail([1], of: reference, version: made.version)
            }
            let names = try await context.list().map(\.name)
            try context.require(names == [made.name], "a picture is listed")
        },
        ConformanceCheck("a file is deleted") { context in
            let made = try await context.makeFile("file", [1])
            try await context.provider.delete(context.reference(made), baseVersion: made.version)
            try context.require(try await context.list().isEmpty, "the deleted file is still listed")
            try await context.expect(.notFound, "looking at a deleted file") {
                _ = try await context.provider.item(for: context.reference(made))
            }
        },
        ConformanceCheck("deleting twice is done") { context in
            let file = try await context.makeFile("file", [1])
            let folder = try await context.makeFolder("folder")
            for item in [file, folder] {
                for _ in 0..<2 { try await context.provider.delete(context.reference(item), baseVersion: item.version) }
            }
        },
        ConformanceCheck("an empty folder is deleted, a full one is a conflict") { context in
            let made = try await context.makeFolder("folder")
            let reference = context.reference(made)
            let file = try await context.makeFile("file", [1], in: reference)
            try await context.expect(.conflict, "deleting a folder that is not empty") {
                try await context.provider.delete(reference, baseVersion: nil)
            }
            try await context.checkContent(file, is: [1], in: reference)
            try await context.provider.delete(context.reference(file, in: reference), baseVersion: file.version)
            try await context.provider.delete(reference, baseVersion: nil)
            try context.require(try await context.list().isEmpty, "the deleted folder is still listed")
        },
        ConformanceCheck("a rename keeps content and version") { context in
            let made = try await context.makeFile("old", [1, 2])
            let moved = try await context.provider.modify(
                context.reference(made), changes: ItemChanges(place: (context.folder, FileName(trusted: Array("new".utf8)))),
                contents: nil,
                baseVersion: made.version)
            try context.require(moved.name == FileName("new"), "modify returns the name '\(moved.name.display)'")
            try context.require(
                try await context.list().map(\.name.display) == ["new"], "the old name is listed, or the new is not")
            try await context.checkContent(moved, is: [1, 2])
        },
        ConformanceCheck("a rename keeps the identifier", needs: .stableIdentifiers) { context in
            for made in [try await context.makeFile("file", [1]), try await context.makeFolder("folder")] {
                let name = FileName(trusted: made.name.bytes + Array(" renamed".utf8))
                let moved = try await context.provider.modify(
                    context.reference(made), changes: ItemChanges(place: (context.folder, name)), contents: nil, baseVersion: nil)
                try context.require(moved.identifier == made.identifier, "the identifier of a \(made.kind) changed")
                // By the path it had: the identifier is right.
                let seen = try await context.provider.item(for: context.reference(made))
                try context.require(seen.name == name, "the renamed \(made.kind) is not found by its identifier")
            }
        },
        ConformanceCheck("a file moves to another folder") { context in
            let target = try await context.makeFolder("target")
            let made = try await context.makeFile("file", [7])
            let reference = context.reference(target)
            let moved = try await context.provider.modify(
                context.reference(made), changes: ItemChanges(place: (reference, FileName(trusted: Array("moved".utf8)))),
                contents: nil,
                baseVersion: nil)
            try context.require(moved.parent == target.identifier, "the moved file's parent is not the target")
            try context.require(
                try await context.list().map(\.identifier) == [target.identifier], "the file is still listed where it was")
            try await context.checkContent(moved, is: [7], in: reference)
        },
        ConformanceCheck("a folder moves with what is in it") { context in
            let target = try await context.makeFolder("target")
            let made = try await context.makeFolder("folder")
            let file = try await context.makeFile("file", [7], in: context.reference(made))
            let moved = try await context.provider.modify(
                context.reference(made), changes: ItemChanges(place: (context.reference(target), made.name)), contents: nil,
                baseVersion: nil)
            let reference = context.reference(moved, in: context.reference(target))
            let listed = try await context.list(reference)
            try context.require(listed.map(\.name) == [file.name], "the moved folder does not hold its file")
            try await context.checkContent(listed[0], is: [7], in: reference)
        },
        ConformanceCheck("mode and time are kept", needs: .metadata) { context in
            let metadata = Metadata(
                mode: 0o640, owner: 0, group: 0, modificationTime: Timestamp(seconds: 1_234_567_890, nanoseconds: 0))
            let made = try await context.makeFile("file", [1], metadata: metadata)
            try context.require(
                made.metadata.mode == 0o640, "the mode is \(String(made.metadata.mode, radix: 8)) after create, not 640")
            try context.require(made.metadata.modificationTime == metadata.modificationTime, "the time is not kept by create")
            var changed = metadata
            changed.mode = 0o600
            changed.modificationTime = Timestamp(seconds: 1_000_000_000, nanoseconds: 0)
            let modified = try await context.provider.modify(
                context.reference(made), changes: ItemChanges(metadata: changed), contents: nil, baseVersion: nil)
            try context.require(modified.metadata.mode == 0o600, "modify does not keep the mode")
            try context.require(modified.metadata.modificationTime == changed.modificationTime, "modify does not keep the time")
            try await context.checkContent(modified, is: [1])
        },
        ConformanceCheck("a link keeps its target and gets another", needs: .links) { context in
            let target: [UInt8] = Array("../nowhere/".utf8) + [0xFF, 0x20]
            let made = try await context.makeLink("link", to: target)
            try context.require(
                made.kind == .link && made.target == target && made.size == UInt64(target.count), "the link's target is not kept")
            let changed = try await context.provider.modify(
                context.reference(made), changes: ItemChanges(target: Array("/absolute".utf8)), contents: nil,
                baseVersion: made.version)
            try context.require(changed.target == Array("/absolute".utf8), "the link's new target is not kept")
            try context.require(changed.version != made.version, "the link's version did not change with its target")
            try context.require(try await context.list() == [changed], "the link is not listed as modify returned it")
            try await context.provider.delete(context.reference(changed), baseVersion: changed.version)
        },
        ConformanceCheck("the quota is told", needs: .quota) { context in
            guard let quota = try await context.provider.quota() else {
                throw ConformanceFailure("the quota is declared but not told")
            }
            try context.require(quota.available <= quota.total, "more is available than there is")
        },
    ]
}
