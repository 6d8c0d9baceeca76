/// A regular expression as a machine that reads each character once (Ken Thompson, "Regular Expression Search Algorithm",
/// 1968): libraries that go back and try again can be made to run for years, and patterns come from strangers.
struct RegularExpression: Sendable {
    indirect enum Node: Sendable {
        case empty
        case any
        case scalar(Unicode.Scalar)
        case oneOf(ScalarClass)
        case sequence([Node])
        case alternatives([Node])
        case star(Node)
        case repetition(Node, Int, Int?)
        case start
        case end

        /// Without what matches nothing but the empty text: it adds no instruction, however often a
        /// pattern repeats it.
        var withoutEmptyParts: Node {
            switch self {
            case .empty, .any, .scalar, .oneOf, .start, .end: return self
            case .sequence(let nodes):
                let rest = nodes.map(\.withoutEmptyParts).filter { !$0.isEmpty }
                return rest.isEmpty ? .empty : .sequence(rest)
            case .alternatives(let nodes): return .alternatives(nodes.map(\.withoutEmptyParts))
            case .star(let node):
                let node = node.withoutEmptyParts
                return node.isEmpty ? .empty : .star(node)
            case .repetition(let node, let least, let most):
                let node = node.withoutEmptyParts
                return node.isEmpty || most == 0 ? .empty : .repetition(node, least, most)
            }
        }

        private var isEmpty: Bool { if case .empty = self { true } else { false } }
    }

    private enum Instruction: Sendable {
        case any
        case scalar(UInt32)
        case oneOf(ScalarClass)
        case split(Int, Int)
        case jump(Int)
        case start
        case end
        case match
    }

    private static let instructionCountMax = 4_000
    private var program: [Instruction] = []
    var instructionCount: Int { program.count }

    init(_ node: Node) throws(PredicateError) {
        try add(node.withoutEmptyParts)
        program.append(.match)
    }

    private mutating func append(_ instruction: Instruction) throws(PredicateError) {
        guard program.count < RegularExpression.instructionCountMax else {
            throw PredicateError(message: "the pattern is too large", position: 0)
        }
        program.append(instruction)
    }

    private mutating func add(_ node: Node) throws(PredicateError) {
        switch node {
        case .empty: break
        case .any: try append(.any)
        case .scalar(let scalar): try append(.scalar(scalar.value))
        case .oneOf(var members):
            members.sort()
            try append(.oneOf(members))
        case .sequence(let nodes): for node in nodes { try add(node) }
        case .alternatives(let nodes): try add(alternatives: nodes[...])
        case .star(let node):
            let split = program.count
            try append(.split(0, 0))
            try add(node)
            try append(.jump(split))
            program[split] = .split(split + 1, program.count)
        case .repetition(let node, let least, let most):
            for _ in 0..<least {
                let count = program.count
                try add(node)
                // What adds nothing adds nothing however often; and nested, often is for ever.
                if program.count == count { break }
            }
            guard let most else { return try add(.star(node)) }
            var splits: [Int] = []
            for _ in least..<most {
                splits.append(program.count)
                try append(.split(0, 0))
                try add(node)
            }
            for split in splits { program[split] = .split(split + 1, program.count) }
        case .start: try append(.start)
        case .end: try append(.end)
        }
    }

    private mutating func add(alternatives nodes: ArraySlice<Node>) throws(PredicateError) {
        var jumps: [Int] = []
        for (offset, node) in nodes.enumerated() {
            if offset == nodes.count - 1 {
                try add(node)
                break
            }
            let split = program.count
            try append(.split(0, 0))
            try add(node)
            jumps.append(program.count)
            try append(.jump(0))
            program[split] = .split(split + 1, program.count)
        }
        for jump in jumps { program[jump] = .jump(program.count) }
    }

    /// Whether the whole text matches.
    func matches(_ text: [UInt8]) -> Bool {
        let scalars = Array(String(decoding: text, as: UTF8.self).unicodeScalars)
        var current = States(program.count)
        var next = States(program.count)
        follow(0, at: 0, of: scalars.count, &current)
        for (position, scalar) in scalars.enumerated() {
            if current.list.isEmpty { return false }
            next.clear()
            for state in current.list where accepts(program[state], scalar) {
                follow(state + 1, at: position + 1, of: scalars.count, &next)
            }
            swap(&current, &next)
        }
        return current.list.contains { if case .match = program[$0] { true } else { false } }
    }

    /// The instructions that the machine is at, each once.
    private struct States {
        var list: [Int] = []
        private var isIn: [Bool]
        init(_ count: Int) { isIn = Array(repeating: false, count: count) }

        mutating func insert(_ state: Int) -> Bool {
            if isIn[state] { return false }
            isIn[state] = true
            list.append(state)
            return true
        }

        mutating func clear() {
            for state in list { isIn[state] = false }
            list.removeAll(keepingCapacity: true)
        }
    }

    /// Enters an instruction and those that are reached from it without reading.
    private func follow(_ start: Int, at position: Int, of count: Int, _ states: inout States) {
        var waiting = [start]
        while let state = waiting.popLast() {
            guard states.insert(state) else { continue }
            switch program[state] {
            case .split(let first, let second): waiting += [second, first]
            case .jump(let target): waiting.append(target)
            case .start: if position == 0 { waiting.append(state + 1) }
            case .end: if position == count { waiting.append(state + 1) }
            case .any, .scalar, .oneOf, .match: break
            }
        }
    }

    private func accepts(_ instruction: Instruction, _ scalar: Unicode.Scalar) -> Bool {
        switch instruction {
        case .any: true
        case .scalar(let wanted): scalar.value == wanted
        case .oneOf(let members): members.contains(scalar)
        case .split, .jump, .start, .end, .match: false
        }
    }
}
