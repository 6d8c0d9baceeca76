import Glibc

/// One call of `org.freedesktop.impl.portal.FileChooser`: what a program wants picked, as the words
/// of `promisefs pick`, and what is answered.
struct FileChooserCall {
    enum Method: String {
        case openFile = "OpenFile"
        case saveFile = "SaveFile"
        case saveFiles = "SaveFiles"
    }

    var method: Method
    /// The object on which the front end calls `Close`.
    var handle: String
    /// Empty: a program of no sandbox.
    var application: String
    var title: String
    var options: [String: BusValue]

    /// `values`: handle, application, parent window, title, options.
    init?(_ method: Method, _ values: [BusValue]) {
        guard values.count == 5, let handle = values[0].text, let application = values[1].text,
            let title = values[3].text, let options = values[4].list
        else { return nil }
        self.method = method
        self.handle = handle
        self.application = application
        self.title = title
        self.options = [:]
        for option in options {
            guard let entry = option.list, entry.count == 2, let key = entry[0].text else {
                continue
            }
            self.options[key] = entry[1]
        }
    }

    private var picksFolders: Bool {
        method == .saveFiles || options["directory"]?.flag == true
    }

    /// The names of several files that are to be made in one folder.
    private var files: [[UInt8]] {
        guard method == .saveFiles else { return [] }
        return (options["files"]?.list ?? []).compactMap(\.path).filter { FileChooserCall.isName($0) }
    }

    /// The connection of the program that asks: part of the handle's name (Request in the portal's own
    /// documentation).
    var sender: String? {
        let parts = handle.split(separator: "/")
        guard parts.count == 7, parts[4] == "request" else { return nil }
        return ":" + parts[5].split(separator: "_").joined(separator: ".")
    }

    /// After `promisefs pick`. `views`: where the program's views are, when others keep it in a sandbox.
    func words(views: [UInt8]?) -> [[UInt8]] {
        var words = ["-0", "--mode", method == .saveFile ? "save" : "open"].map { Array($0.utf8) }
        func add(_ option: String, _ value: [UInt8]? = nil) {
            // One word, so that no value is taken for an option.
            words.append(Array(option.utf8) + (value.map { [UInt8(ascii: "=")] + $0 } ?? []))
        }
        if !title.isEmpty { add("--title", Array(title.utf8)) }
        if !application.isEmpty { add("--requester", Array(application.utf8)) }
        if let views {
            add("--app", Array(application.utf8))
            add("--view", views)
        }
        if picksFolders { add("--folders") }
        if method == .openFile, options["multiple"]?.flag == true { add("--multiple") }
        if method == .openFile, !picksFolders {
            for type in types { add("--type", Array(type.utf8)) }
        }
        var folder = options["current_folder"]?.path
        var name = options["current_name"]?.text.map { Array($0.utf8) }
        if method == .saveFile, let file = options["current_file"]?.path,
            let slash = file.lastIndex(of: 0x2F)
        {
            folder = slash == 0 ? [0x2F] : Array(file[..<slash])
            name = Array(file[(slash + 1)...])
        }
        for choice in choices { add("--choice", Array(choice.word.utf8)) }
        // No path is looked at here: one that hangs would hold up all programs.
        if let folder { add("--near", folder) }
        for file in files { add("--file", file) }
        if method == .saveFile, let name, FileChooserCall.isName(name) { add("--suggest", name) }
        return words
    }

    static func isName(_ name: [UInt8]) -> Bool {
        !name.isEmpty && name.count <= 255 && !name.contains(0x2F) && !name.contains(0)
            && name != [0x2E] && name != [0x2E, 0x2E]
    }

    // MARK: Filters and choices

    /// What the chosen filter admits; without one what any of them does. Empty: everything.
    private var types: [String] {
        let filters = options["current_filter"].map { [$0] } ?? options["filters"]?.list ?? []
        var result: [String] = []
        for filter in filters {
            let rules = filter.list?.last?.list ?? []
            for rule in rules {
                guard let parts = rule.list, parts.count == 2, let text = parts[1].text else {
                    continue
                }
                // 0: a pattern of names; 1: a MIME type.
                if parts[0].number == 1 {
                    if text.contains("/") { result.append(text) }
                } else if let pattern = FileChooserCall.pattern(text) {
                    result.append(pattern)
                } else {
                    return []
                }
            }
        }
        return result
    }

    /// `*.txt`, also where it is written as `*.[tT][xX][tT]`; nil for what admits more than that.
    static func pattern(_ text: String) -> String? {
        guard text.hasPrefix("*.") else { return nil }
        var result = "*."
        var rest = text.dropFirst(2)
        while let first = rest.first {
            rest = rest.dropFirst()
            if first == "[" {
                guard let end = rest.firstIndex(of: "]"), let letter = rest.first,
                    rest[..<end].allSatisfy({ $0.lowercased() == letter.lowercased() })
                else { return nil }
                result += letter.lowercased()
                rest = rest[rest.index(after: end)...]
            } else if "*?\\,".contains(first) {
                return nil
            } else {
                result += first.lowercased()
            }
        }
        return result.count > 2 ? result : nil
    }

    /// What the program wants to know besides.
    private struct Choice {
        var identifier: String
        var label: String
        /// Identifier and label; none: it is true or false.
        var options: [(String, String)]
        /// An index of `values`.
        var initial: Int

        var values: [String] { options.isEmpty ? ["false", "true"] : options.map(\.0) }

        /// As `promisefs pick --choice` reads it: labels alone, in which nothing separates.
        var word: String {
            func plain(_ text: String) -> String {
                String(text.unicodeScalars.map { $0.value < 0x20 ? " " : Character($0) })
            }
            let label = plain(self.label.isEmpty ? identifier : self.label)
            let shown = label.isEmpty ? "?" : label
            if options.isEmpty { return initial == 1 ? shown + "\t*" : shown }
            return options.enumerated().reduce(into: shown) { text, option in
                text += (option.offset == initial ? "\t*" : "\t ") + plain(option.element.1)
            }
        }
    }

    private var choices: [Choice] {
        (options["choices"]?.list ?? []).compactMap { choice in
            guard let parts = choice.list, parts.count == 4, let identifier = parts[0].text,
                let label = parts[1].text
            else { return nil }
            let known: [(String, String)] = (parts[2].list ?? []).compactMap { option in
                guard let pair = option.list, pair.count == 2, let name = pair[0].text,
                    let shown = pair[1].text
                else { return nil }
                return (name, shown)
            }
            var result = Choice(identifier: identifier, label: label, options: known, initial: 0)
            result.initial = result.values.firstIndex(of: parts[3].text ?? "") ?? 0
            return result
        }
    }

    // MARK: Answering

    /// Nil: the person cancelled. `chosen`: of each choice, by its number.
    func answer(
        _ paths: [[UInt8]]?, chosen: [Int: Int], to writer: BusWriter
    ) throws(BusError) {
        // Without names the folder alone is of no use to whoever saves files.
        let picked = method == .saveFiles && files.isEmpty ? [] : paths ?? []
        let isPicked = paths != nil && !picked.isEmpty
        try writer.number(isPicked ? 0 : 1)
        try writer.container("a", "{sv}") { () throws(BusError) in
            guard isPicked else { return }
            try writer.entry("uris", "as") { () throws(BusError) in
                try writer.container("a", "s") { () throws(BusError) in
                    for path in picked { try writer.text(FileChooserCall.address(of: path)) }
                }
            }
            if method == .openFile {
                try writer.entry("writable", "b") { () throws(BusError) in try writer.flag(true) }
            }
            if options["choices"] != nil { try answerChoices(chosen, writer) }
            if let filter = options["current_filter"] ?? options["filters"]?.list?.first {
                try answerFilter(filter, writer)
            }
        }
    }

    private func answerChoices(
        _ chosen: [Int: Int], _ writer: BusWriter
    ) throws(BusError) {
        try writer.entry("choices", "a(ss)") { () throws(BusError) in
            try writer.container("a", "(ss)") { () throws(BusError) in
                for (index, choice) in choices.enumerated() {
                    let said = chosen[index] ?? choice.initial
                    let option = choice.values.indices.contains(said) ? said : choice.initial
                    try writer.container("r", "ss") { () throws(BusError) in
                        try writer.text(choice.identifier)
                        try writer.text(choice.values[option])
                    }
                }
            }
        }
    }

    private func answerFilter(_ filter: BusValue, _ writer: BusWriter) throws(BusError) {
        guard let parts = filter.list, parts.count == 2, let name = parts[0].text else { return }
        try writer.entry("current_filter", "(sa(us))") { () throws(BusError) in
            try writer.container("r", "sa(us)") { () throws(BusError) in
                try writer.text(name)
                try writer.container("a", "(us)") { () throws(BusError) in
                    for rule in parts[1].list ?? [] {
                        guard let rule = rule.list, rule.count == 2, let kind = rule[0].number,
                            let text = rule[1].text
                        else { continue }
                        try writer.container("r", "us") { () throws(BusError) in
                            try writer.number(UInt32(truncatingIfNeeded: kind))
                            try writer.text(text)
                        }
                    }
                }
            }
        }
    }

    /// RFC 8089.
    static func address(of path: [UInt8]) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var result = Array("file://".utf8)
        for byte in path {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x2F, 0x5F, 0x7E:
                result.append(byte)
            default: result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
