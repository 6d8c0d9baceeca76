import PromiseCore

// What was removed, where the storage says that it keeps it: listed where it was, brought back as
// it was, and never over something else.

enum BinChecks {
    static let all: [ConformanceCheck] = [
        check("what was removed is listed where it was, and what is there is not") { trial in
            let folder = trial.context.reference(try await trial.context.makeFolder("folder"))
            let other = try await trial.context.makeFile("other", [1], in: folder)
            let found = try await trial.remove(trial.name, of: 5000, in: folder)
            try trial.context.require(found.kind == .file, "a file is listed as a \(found.kind)")
            try trial.context.require(
                found.size == 5000, "of a file of 5000 bytes \(found.size) are listed")
            try trial.context.require(
                try await trial.entries(at: folder.path + [other.name]).isEmpty,
                "what was not removed is listed")
        },
        check("what was removed comes back with its bytes to where it was") { trial in
            let first = try await trial.remove(trial.name, of: 5000)
            let second = try await trial.remove(FileName(trusted: Array("other".utf8)), of: 3)
            try await trial.bin.restore(first)
            try await trial.requireBack(trial.name, of: 5000)
            let left = try await trial.list().map(\.identifier)
            try trial.context.require(
                !left.contains(first.identifier), "what was brought back is listed still")
            try trial.context.require(
                left.contains(second.identifier), "something else is listed no longer")
        },
        check("what is back is not brought back again") { trial in
            let found = try await trial.remove(trial.name, of: 3)
            try await trial.bin.restore(found)
            do throws(ProviderError) {
                try await trial.bin.restore(found)
            } catch {
                try trial.context.require(
                    error.code == .notFound || error.code == .conflict,
                    "it must be notFound or conflict, not \(error.code): \(error.message)")
                return try await trial.requireBack(trial.name, of: 3)
            }
            throw ConformanceFailure("it must be notFound or conflict, but it was done")
        },
        check("bringing back to a taken name is a conflict, and loses neither") { trial in
            let found = try await trial.remove(trial.name, of: 5000)
            let removed = ContinuousClock.now
            let taken = try await trial.context.makeFile(trial.name, [7])
            try await trial.context.expect(.conflict, "bringing back to a taken name") {
                try await trial.bin.restore(found)
            }
            try trial.context.require(
                try await trial.context.list() == [taken],
                "what has the name changed, or is not alone")
            try await trial.context.checkContent(taken, is: [7])
            try trial.context.require(
                try await trial.list().map(\.identifier).contains(found.identifier),
                "what was not brought back is listed no longer")
            // A bin may name what it keeps by the second, and lose the first of two of one name.
            try await Task.sleep(until: removed + .milliseconds(1_100), clock: .continuous)
            try await trial.context.provider.delete(
                trial.context.reference(taken), baseVersion: taken.version)
            try await trial.bin.restore(found)
            try await trial.requireBack(trial.name, of: 5000)
        },
        check("bringing back into a folder that is gone is a conflict") { trial in
            let made = try await trial.context.makeFolder("folder")
            let folder = trial.context.reference(made)
            let found = try await trial.remove(trial.name, of: 5000, in: folder)
            try await trial.context.provider.delete(folder, baseVersion: nil)
            try await trial.context.expect(.conflict, "bringing back without its folder") {
                try await trial.bin.restore(found)
            }
            try trial.context.require(
                try await trial.context.list().isEmpty,
                "it is somewhere else, or its folder is back")
            // Not every storage lists folders.
            if let removed = try await trial.entries(at: folder.path).first {
                try await trial.bin.restore(removed)
            } else {
                _ = try await trial.context.makeFolder("folder")
            }
            try await trial.bin.restore(found)
            guard let back = try await trial.context.list().first, back.kind == .folder else {
                throw ConformanceFailure("its folder is not there")
            }
            try await trial.requireBack(trial.name, of: 5000, in: trial.context.reference(back))
        },
        check("an empty folder comes back as one") { trial in
            let folder = trial.context.reference(try await trial.context.makeFolder("folder"))
            let before = Set(try await trial.entries(at: folder.path).map(\.identifier))
            try await trial.context.provider.delete(folder, baseVersion: nil)
            let found = try await trial.entries(at: folder.path)
            guard let removed = found.first(where: { !before.contains($0.identifier) }) else {
                throw ConformanceLack("folders that were empty are not listed")
            }
            try trial.context.require(
                removed.kind == .folder, "a folder is listed as a \(removed.kind)")
            try await trial.bin.restore(removed)
            let items = try await trial.context.list()
            try trial.context.require(
                items.map(\.kind) == [.folder] && items.map(\.name) == folder.path.suffix(1),
                "there is something else than the folder")
            try trial.context.require(
                try await trial.context.list(trial.context.reference(items[0])).isEmpty,
                "something is in it that was not")
        },
        check("what was not removed is not found among it") { trial in
            let unknown = BinItem(
                identifier: "no-such-item", path: trial.context.folder.path + [trial.name],
                kind: .file, size: 3, modificationTime: nil,
                removalTime: ConformanceContext.metadata.modificationTime)
            try await trial.context.expect(.notFound, "bringing back what was not removed") {
                try await trial.bin.restore(unknown)
            }
            try trial.context.require(
                try await trial.context.list().isEmpty, "something is there that never was")
        },
        check("what was removed is listed the newest first, each once") { trial in
            var removed: [BinItem] = []
            for name in ["one", "two", "three"] {
                let name = FileName(trusted: trial.name.bytes + Array(name.utf8))
                removed.append(try await trial.remove(name, of: 3))
            }
            let all = try await trial.list()
            try trial.context.require(all.count <= BinTrial.countMax, "\(all.count) are listed")
            try trial.context.require(
                Set(all.map(\.identifier)).count == all.count, "two have one identifier")
            for list in [all, removed.reversed()] {
                for (newer, older) in zip(list, list.dropFirst()) {
                    try trial.context.require(
                        newer.removalTime >= older.removalTime,
                        "what was removed later is listed after what was removed before")
                }
            }
        },
    ]

    private static func check(
        _ sentence: String, _ body: @escaping @Sendable (BinTrial) async throws -> Void
    ) -> ConformanceCheck {
        ConformanceCheck(sentence, needs: .removedItems) { context in
            guard let bin = context.provider.bin else {
                throw ConformanceFailure("what was removed is declared to be kept, and is not")
            }
            try await body(BinTrial(context: context, bin: bin))
        }
    }
}

/// What a storage keeps of what was removed, and a name that was never there.
private struct BinTrial {
    /// More are not listed.
    static let countMax = 10_000

    let context: ConformanceContext
    let bin: any ProviderBin
    /// With what is often escaped, or taken for an escape.
    let name = FileName(
        trusted: Array("a %41 \u{fc} ".utf8)
            + Array(String(UInt64.random(in: 0 ... .max), radix: 36).utf8))

    func list() async throws -> [BinItem] {
        do throws(ProviderError) {
            return try await bin.list()
        } catch where error.code == .refused {
            throw ConformanceLack(error.message)
        }
    }

    func entries(at path: [FileName]) async throws -> [BinItem] {
        try await list().filter { $0.path == path }
    }

    private func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(ascii: "a") + UInt8($0 % 26) }
    }

    /// Makes a file and removes it. Returns what is listed of it.
    func remove(
        _ name: FileName, of count: Int, in parent: ItemReference? = nil
    ) async throws -> BinItem {
        let made = try await context.makeFile(name, bytes(count), in: parent)
        let reference = context.reference(made, in: parent)
        let before = Set(try await entries(at: reference.path).map(\.identifier))
        try await context.provider.delete(reference, baseVersion: made.version)
        let new = try await entries(at: reference.path).filter { !before.contains($0.identifier) }
        try context.require(
            new.count == 1, "what was removed is listed \(new.count) times where it was")
        return new[0]
    }

    /// There, whole, and alone in its folder.
    func requireBack(
        _ name: FileName, of count: Int, in parent: ItemReference? = nil
    ) async throws {
        let items = try await context.list(parent)
        try context.require(
            items.map(\.name) == [name] && items[0].kind == .file,
            "it is not back under its name, or not alone")
        try await context.checkContent(items[0], is: bytes(count), in: parent)
    }
}
