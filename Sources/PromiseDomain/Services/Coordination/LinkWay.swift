import PromiseCore

/// The way to where a path leads when its links are followed, one name after the other, as realpath(3) goes it. It may lead out
/// of the mount, when it comes back into it.
struct LinkWay {
    /// A name on the way; whoever goes it says whether that is a link (`follow`) or not (`enter`).
    enum Look {
        /// From the root of the mount.
        case inside([FileName])
        /// An absolute path without any link above.
        case outside([UInt8])
    }

    private enum Step {
        case up
        case name(FileName)
    }

    private static let linkCountMax = 40
    private static let slash = UInt8(ascii: "/")

    /// The names of the mount's path.
    private let mount: [[UInt8]]
    /// From the root of the mount, without any link.
    private(set) var done: [FileName] = []
    /// The names from the root of the machine, while the way is outside.
    private var outside: [[UInt8]]?
    /// The last one is the next one.
    private var rest: [Step]
    private var current: FileName?
    private var linkCount = 0

    init(_ path: [FileName], mountPoint: [UInt8]) {
        mount = mountPoint.split(separator: LinkWay.slash).map { Array($0) }
        rest = path.reversed().map { .name($0) }
    }

    /// Nil at the end of the way. Throws `.crossDevice` when that is outside.
    mutating func next() throws(Failure) -> Look? {
        while true {
            if outside == mount { (outside, done) = (nil, []) }
            guard let step = rest.popLast() else {
                if outside != nil { throw LinkWay.isOutside }
                return nil
            }
            switch step {
            case .up: goUp()
            case .name(let name):
                current = name
                guard let outside else { return .inside(done + [name]) }
                let place = outside + [name.bytes]
                // What is above the mount is no link: its own path has none.
                guard mount.starts(with: place) else { return .outside(place.flatMap { [LinkWay.slash] + $0 }) }
                self.outside = place
            }
        }
    }

    private mutating func goUp() {
        if outside != nil {
            _ = outside?.popLast()
        } else if done.popLast() == nil {
            outside = Array(mount.dropLast())
        }
    }

    mutating func enter() {
        guard let current else { return }
        if outside != nil { outside?.append(current.bytes) } else { done.append(current) }
    }

    mutating func follow(_ target: [UInt8]) throws(Failure) {
        linkCount += 1
        guard linkCount <= LinkWay.linkCountMax else {
            throw Failure(.invalid, "there are too many links behind each other")
        }
        if target.first == LinkWay.slash { outside = [] }
        var steps: [Step] = []
        for part in target.split(separator: LinkWay.slash) where !part.elementsEqual(".".utf8) {
            if part.elementsEqual("..".utf8) {
                steps.append(.up)
            } else {
                guard let name = FileName(part) else { throw Failure(.invalid, "the link leads to no name of an item") }
                steps.append(.name(name))
            }
        }
        rest += steps.reversed()
    }

    static let isOutside = Failure(.crossDevice, "the link leads out of the mount")
}
