import PromiseCore

// Private objects: read back whole, replaced only in the version that was named, and seen by
// nobody.

enum PrivateObjectChecks {
    static let all: [ConformanceCheck] = [
        check("a private object is written only over what was named") { context, objects, name in
            try context.require(
                try await objects.read(name) == nil, "an object is there that nobody wrote")
            let first = try await objects.write([1], to: name, base: nil)
            try await context.checkObject(objects, name, [1], first)
            try await context.expect(.conflict, "making an object that is there") {
                _ = try await objects.write([2], to: name, base: nil)
            }
            try await context.checkObject(objects, name, [1], first)
            let second = try await objects.write([3, 3], to: name, base: first)
            try context.require(first != second, "another content has the same version")
            try await context.expect(.conflict, "writing over a version that was replaced") {
                _ = try await objects.write([4], to: name, base: first)
            }
            try await context.checkObject(objects, name, [3, 3], second)
        },
        check("a private object is deleted only in the version that was named") {
            context, objects, name in
            let first = try await objects.write([1], to: name, base: nil)
            let second = try await objects.write([2, 2], to: name, base: first)
            try await context.expect(.conflict, "deleting a version that was replaced") {
                try await objects.delete(name, base: first)
            }
            try await context.checkObject(objects, name, [2, 2], second)
            try await objects.delete(name, base: second)
            try context.require(try await objects.read(name) == nil, "the deleted object is there")
            // Gone already is gone.
            try await objects.delete(name, base: second)
            try await context.expect(.conflict, "writing over what is gone") {
                _ = try await objects.write([3], to: name, base: second)
            }
            try context.require(try await objects.read(name) == nil, "the deleted object is back")
            _ = try await objects.write([4], to: name, base: nil)
        },
        check("a private object of any size comes back whole") { context, objects, name in
            var version: ContentVersion?
            for count in [0, 1, 4096, 100_000, 2 << 20] {
                let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ count) }
                version = try await objects.write(bytes, to: name, base: version)
                try await context.checkObject(objects, name, bytes, version)
            }
        },
        check("private objects are listed by their kind and nowhere else") {
            context, objects, name in
            let anchor = try await context.provider.currentAnchor()
            _ = try await objects.write([1], to: name, base: nil)
            try context.require(
                try await objects.list(.checks).contains(name), "the object is not listed")
            try context.require(
                try await !objects.list(.values).contains { $0.name == name.name },
                "another kind lists it")
            let root = ItemReference(
                identifier: try await context.provider.root().identifier, path: [])
            let hidden = FileName(trusted: Array(".promisefs".utf8))
            try context.require(
                try await !context.list(root).contains { $0.name == hidden },
                "the root shows their folder")
            try context.require(try await context.list().isEmpty, "a folder shows them")
            let page = try await context.provider.changes(since: anchor)
            let shown = page.updated.contains { $0.name == name.fileName || $0.name == hidden }
            try context.require(!shown, "the change feed shows them")
        },
        check("of concurrent writes of one private object one wins") { context, objects, name in
            let base = try await objects.write([0], to: name, base: nil)
            let winners = await withTaskGroup(of: (UInt8, ContentVersion)?.self) { group in
                for number in UInt8(1)...16 {
                    group.addTask {
                        let bytes = [UInt8](repeating: number, count: Int(number))
                        return (try? await objects.write(bytes, to: name, base: base)).map {
                            (number, $0)
                        }
                    }
                }
                return await group.reduce(into: [(UInt8, ContentVersion)]()) { winners, one in
                    if let one { winners.append(one) }
                }
            }
            try context.require(
                winners.count == 1, "\(winners.count) writes over one version were done")
            let bytes = [UInt8](repeating: winners[0].0, count: Int(winners[0].0))
            try await context.checkObject(objects, name, bytes, winners[0].1)
        },
    ]

    /// With a name of its own, whose object is removed afterwards.
    private static func check(
        _ sentence: String,
        _ body:
            @escaping @Sendable (ConformanceContext, any PrivateObjects, PrivateName) async throws
            -> Void
    ) -> ConformanceCheck {
        ConformanceCheck(sentence, needs: .privateObjects) { context in
            guard let objects = context.provider.privateObjects else {
                throw ConformanceFailure("private objects are declared, and there are none")
            }
            let text = "check-" + String(UInt64.random(in: 0 ... .max), radix: 36)
            guard let name = PrivateName(.checks, text) else {
                throw ConformanceFailure("'\(text)' is no name")
            }
            let outcome: Result<Void, any Error>
            do { outcome = .success(try await body(context, objects, name)) } catch {
                outcome = .failure(error)
            }
            if let left = try await objects.read(name) {
                try await objects.delete(name, base: left.version)
            }
            try outcome.get()
        }
    }
}

extension ConformanceContext {
    func checkObject(
        _ objects: any PrivateObjects, _ name: PrivateName, _ bytes: [UInt8],
        _ version: ContentVersion?
    ) async throws {
        guard let found = try await objects.read(name) else {
            throw ConformanceFailure("the object is not there")
        }
        try require(
            found.bytes == bytes,
            "\(found.bytes.count) other bytes came than the \(bytes.count) that were written")
        try require(
            found.version == version,
            "reading tells the version \(found.version), writing told \(version as Any)")
    }
}
