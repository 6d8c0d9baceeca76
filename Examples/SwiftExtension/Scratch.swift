import Glibc
import PromiseWire

/// What the extension holds: items in memory, gone with it. An actor, so that each change is one step.
actor Scratch {
    /// Answered as a problem document (RFC 9457).
    struct Problem: Error {
        var status: Int
        var detail: String
    }

    private struct Item {
        var parent: Int
        var name: [UInt8]
        var kind: String
        var version = 0
        var mode: UInt32
        var owner: UInt32
        var group: UInt32
        var modified: Int64
        var target: [UInt8]?
        var content: [UInt8] = []
        /// What it was before, the newest last.
        var earlier: [Earlier] = []
    }

    private struct Earlier {
        var version: Int
        var content: [UInt8]
        var modified: Int64
    }

    private struct Removed {
        var number: Int
        var path: [[UInt8]]
        var time: Int64
        var item: Item
        var identifier: Int
    }

    private static let root = 1
    private static let pageSize = 1000
    /// All of it is in memory.
    private static let earlierMax = 10
    private static let removedMax = 1000
    private static let keptByteCountMax = 64 << 20

    private var items: [Int: Item] = [:]
    private var places: [Int: [[UInt8]: Int]] = [1: [:]]
    private var lastNumber = 1
    private var lastVersion = 0
    /// The newest last.
    private var removed: [Removed] = []
    private var lastRemoval = 0

    // MARK: Looking

    func root() -> ExtensionItemDocument {
        ExtensionItemDocument(identifier: "\(Scratch.root)", parent: nil, name: "root", kind: "folder")
    }

    func item(_ identifier: String) throws -> ExtensionItemDocument {
        let number = try number(identifier)
        return number == Scratch.root ? root() : document(number, items[number]!)
    }

    func children(of identifier: String, after page: String?) throws -> ExtensionPageDocument {
        let folder = try folder(identifier)
        let numbers = places[folder]!.values.filter { $0 > Int(page ?? "0") ?? 0 }.sorted().prefix(Scratch.pageSize)
        return ExtensionPageDocument(
            items: numbers.map { document($0, items[$0]!) },
            next: numbers.count == Scratch.pageSize ? numbers.last.map { "\($0)" } : nil)
    }

    func content(of identifier: String, version: String?) throws -> [UInt8] {
        let number = try number(identifier)
        guard let item = items[number], item.kind == "file", "\(item.version)" == version else {
            throw Problem(status: 412, detail: "this is another version")
        }
        return item.content
    }

    // MARK: Changing

    func create(in folder: String, _ query: [String: [UInt8]], _ content: [UInt8]) throws -> ExtensionItemDocument {
        let parent = try self.folder(folder)
        guard let name = query["name"], let kind = query["kind"].map({ String(decoding: $0, as: UTF8.self) }) else {
            throw Problem(status: 400, detail: "a new item has a name and a kind")
        }
        guard places[parent]![name] == nil else { throw Problem(status: 409, detail: "the name is taken") }
        lastNumber += 1
        var item = Item(parent: parent, name: name, kind: kind, mode: 0, owner: 0, group: 0, modified: 0, target: query["target"])
        item.content = content
        items[lastNumber] = item
        places[parent]![name] = lastNumber
        if kind == "folder" { places[lastNumber] = [:] }
        return try change(lastNumber, query, isNewContent: true)
    }

    func modify(_ identifier: String, _ query: [String: [UInt8]], _ content: [UInt8]?) throws -> ExtensionItemDocument {
        let number = try number(identifier)
        try expect(number, query["version"])
        if let name = query["name"], let parent = query["parent"] {
            try move(number, to: try folder(String(decoding: parent, as: UTF8.self)), name)
        }
        if let target = query["target"] { items[number]!.target = target }
        if let content {
            setAside(number)
            items[number]!.content = content
        }
        return try change(number, query, isNewContent: content != nil || query["target"] != nil)
    }

    func delete(_ identifier: String, _ query: [String: [UInt8]]) throws {
        let number = try number(identifier)
        try expect(number, query["version"])
        guard places[number]?.isEmpty ?? true else { throw Problem(status: 409, detail: "the folder is not empty") }
        let path = path(number)
        if let item = items.removeValue(forKey: number) {
            places[item.parent]![item.name] = nil
            keep(item, number, path)
        }
        places[number] = nil
    }

    private func move(_ number: Int, to parent: Int, _ name: [UInt8]) throws {
        var above = parent
        while above != Scratch.root {
            guard above != number else { throw Problem(status: 409, detail: "a folder cannot be in itself") }
            above = items[above]!.parent
        }
        let holder = places[parent]![name]
        guard holder == nil || holder == number else { throw Problem(status: 409, detail: "the name is taken") }
        places[items[number]!.parent]![items[number]!.name] = nil
        places[parent]![name] = number
        (items[number]!.parent, items[number]!.name) = (parent, name)
    }

    private func change(_ number: Int, _ query: [String: [UInt8]], isNewContent: Bool) throws -> ExtensionItemDocument {
        func word<Number: FixedWidthInteger>(_ key: String) -> Number? {
            query[key].flatMap { Number(String(decoding: $0, as: UTF8.self)) }
        }
        items[number]!.mode = word("mode") ?? items[number]!.mode
        items[number]!.owner = word("owner") ?? items[number]!.owner
        items[number]!.group = word("group") ?? items[number]!.group
        items[number]!.modified = word("modified") ?? items[number]!.modified
        if isNewContent {
            lastVersion += 1
            items[number]!.version = lastVersion
        }
        return document(number, items[number]!)
    }

    // MARK: What was

    func versions(of identifier: String) throws -> ExtensionVersionsDocument {
        let earlier = items[try number(identifier)]?.earlier ?? []
        return ExtensionVersionsDocument(
            versions: earlier.reversed().map { earlier in
                ExtensionVersionDocument(
                    identifier: "\(earlier.version)", size: Int64(earlier.content.count), modified: earlier.modified)
            })
    }

    func content(of identifier: String, earlier version: String) throws -> [UInt8] {
        let earlier = items[try number(identifier)]?.earlier.first { "\($0.version)" == version }
        guard let earlier else { throw Problem(status: 404, detail: "this version is not kept") }
        return earlier.content
    }

    private func setAside(_ number: Int) {
        guard let item = items[number], item.content.count <= Scratch.keptByteCountMax / Scratch.earlierMax else { return }
        let earlier = Earlier(version: item.version, content: item.content, modified: item.modified)
        items[number]!.earlier = (item.earlier + [earlier]).suffix(Scratch.earlierMax)
    }

    func bin() -> ExtensionBinDocument {
        ExtensionBinDocument(
            items: removed.reversed().map { removed in
                ExtensionBinItemDocument(
                    identifier: "\(removed.number)", path: removed.path.map { "/" + PercentCoding.encode($0) }.joined(),
                    kind: removed.item.kind, size: Int64(removed.item.content.count), modified: removed.item.modified,
                    removed: removed.time)
            })
    }

    private func keep(_ item: Item, _ identifier: Int, _ path: [[UInt8]]) {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        var item = item
        item.earlier = []
        lastRemoval += 1
        let time = Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec)
        removed.append(Removed(number: lastRemoval, path: path, time: time, item: item, identifier: identifier))
        var byteCount = removed.reduce(0) { $0 + $1.item.content.count }
        while removed.count > Scratch.removedMax || byteCount > Scratch.keptByteCountMax {
            byteCount -= removed.removeFirst().item.content.count
        }
    }

    /// As the item that it was, into the folder that is where its folder was.
    func restore(_ number: String) throws {
        guard let place = removed.firstIndex(where: { "\($0.number)" == number }) else {
            throw Problem(status: 404, detail: "this is not kept any more")
        }
        let found = removed[place]
        var parent = Scratch.root
        for name in found.path.dropLast() {
            guard let next = places[parent]?[name] else {
                throw Problem(status: 409, detail: "its folder is gone: bring that back before")
            }
            parent = next
        }
        guard let names = places[parent], names[found.item.name] == nil else {
            throw Problem(status: 409, detail: "its name is taken")
        }
        var item = found.item
        item.parent = parent
        items[found.identifier] = item
        places[parent]![item.name] = found.identifier
        if item.kind == "folder" { places[found.identifier] = [:] }
        removed.remove(at: place)
    }

    private func path(_ number: Int) -> [[UInt8]] {
        var names: [[UInt8]] = []
        var number = number
        while let item = items[number] {
            names.append(item.name)
            number = item.parent
        }
        return names.reversed()
    }

    // MARK: Finding

    private func number(_ identifier: String) throws -> Int {
        guard let number = Int(identifier), number == Scratch.root || items[number] != nil else {
            throw Problem(status: 404, detail: "there is no such item")
        }
        return number
    }

    private func folder(_ identifier: String) throws -> Int {
        let number = try number(identifier)
        guard places[number] != nil else { throw Problem(status: 404, detail: "this is no folder") }
        return number
    }

    private func expect(_ number: Int, _ version: [UInt8]?) throws {
        guard let version, let item = items[number], item.kind != "folder" else { return }
        guard Array("\(item.version)".utf8) == version else { throw Problem(status: 412, detail: "it has another version now") }
    }

    private func document(_ number: Int, _ item: Item) -> ExtensionItemDocument {
        var document = ExtensionItemDocument(
            identifier: "\(number)", parent: "\(item.parent)", name: PercentCoding.encode(item.name), kind: item.kind,
            size: Int64(item.target?.count ?? item.content.count), version: "\(item.version)", mode: item.mode,
            modified: item.modified, target: item.target.map { PercentCoding.encode($0) })
        document.owner = item.owner
        document.group = item.group
        return document
    }
}
