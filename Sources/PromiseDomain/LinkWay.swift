import PromiseCore

/// The way to where a path leads when its links are followed, one name after the other.
struct LinkWay {
    private enum Step {
        case up
        case name(FileName)
    }

    private static let linkCountMax = 40
    private static let slash = UInt8(ascii: "/")

    private let mountPoint: [UInt8]
    /// From the root of the mount, without any link.
    private(set) var done: [FileName] = []
    /// The last one is the next one.
    private var rest: [Step]
    private var current: FileName?
    private var linkCount = 0

    init(_ path: [FileName], mountPoint: [UInt8]) {
        self.mountPoint = mountPoint
        rest = path.reversed().map { .name($0) }
    }

    /// What is to be looked at: a link (`follow`), or not (`enter`). Nil at the end of the way.
    mutating func next() throws(Failure) -> [FileName]? {
        while let step = rest.popLast() {
            switch step {
            case .up: guard done.popLast() != nil else { throw LinkWay.isOutside }
            case .name(let name):
                current = name
                return done + [name]
            }
        }
        return nil
    }

    mutating func enter() {
        if let current { done.append(current) }
    }

    mutating func follow(_ target: [UInt8]) throws(Failure) {
        linkCount += 1
        guard linkCount <= LinkWay.linkCountMax else {
            throw Failure(.invalid, "there are too many links behind each other")
        }
        var path = target[...]
        if target.first == LinkWay.slash {
            path = target.dropFirst(mountPoint.count)
            guard target.starts(with: mountPoint), path.first ?? LinkWay.slash == LinkWay.slash else {
                throw LinkWay.isOutside
            }
            done = []
        }
        var steps: [Step] = []
        for part in path.split(separator: LinkWay.slash) where !part.elementsEqual(".".utf8) {
            if part.elementsEqual("..".utf8) {
                steps.append(.up)
            } else {
                guard let name = FileName(part) else { throw Failure(.invalid, "the link leads to no name of an item") }
                steps.append(.name(name))
            }
        }
        rest += steps.reversed()
    }

    private static let isOutside = Failure(.crossDevice, "the link leads out of the mount")
}
