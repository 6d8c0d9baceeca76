import ArgumentParser
import FoundationEssentials
import PromiseCore
import PromiseKit
import PromiseQuery
import PromiseSystem
import PromiseWire

struct KeyValueCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "kv",
        abstract: "Small values that an application finds again on every machine.",
        discussion: """
            They are kept on this machine and at the provider; reading asks nobody. A value over a limit is refused and the old \
            one stays: 64 KiB together, 1,024 keys of 64 bytes.

            Example:
              promisefs kv set --app com.example.editor theme dark
              promisefs kv get --app com.example.editor theme
            """,
        subcommands: [Get.self, Set.self, Remove.self, List.self, Watch.self])

    /// Whose values.
    struct Whose: ParsableArguments {
        @Option(
            name: .long,
            help: ArgumentHelp("The application, as com.example.editor.", valueName: "id"))
        var app: String
        @Option(
            name: .long,
            help: ArgumentHelp("The domain; needed where several are mounted.", valueName: "name"))
        var domain: String?
        @OptionGroup var output: OutputOptions

        func store() async throws -> KeyValueStore {
            let mount = try await Targets.mount(ofDomain: domain, saidBy: "--domain")
            return KeyValueStore(try PromiseClient(mount: mount), application: app)
        }
    }

    struct Get: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print a value.",
            discussion: """
                Text as it is, data in base64, dates as 2026-01-31T12:00:00Z, lists and maps \
                as JSON. Ends with status 1 when there is none. With --json it is one object.

                Example:
                  promisefs kv get --app com.example.editor theme
                """)
        @OptionGroup var whose: Whose
        @Argument var key: String

        func run() async throws {
            let store = try await whose.store()
            guard let value = try await store.value(for: key) else {
                throw CommandFailure(
                    "'\(whose.app)' has no value '\(key)'; 'promisefs kv list' shows those it has")
            }
            if whose.output.json {
                return Output.json(
                    KeptValueDocument(application: whose.app, key: key, value: value))
            }
            switch value {
            case .list, .map: Output.json(value)
            // A program is to have what was set, a terminal is not to obey it.
            case _ where Terminal.isOutput: Output.line(value.shown)
            default: Output.bytes(Array(value.shown.utf8))
            }
        }
    }

    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Set a value; it is on the disk when the command ends.",
            discussion: """
                It is text, unless --type says what it is: integer, number, bool, a date as 2026-01-31T12:00:00Z, or json for \
                any kind, as {"list": [{"bool": true}, {"date": NANOSECONDS}]}. \
                With --file the value is what is in a file: data, or text with --type string. With --json it is one \
                object.

                Example:
                  promisefs kv set --app com.example.editor zoom 1.5 --type number
                """)
        enum Kind: String, ExpressibleByArgument { case string, integer, number, bool, date, data, json }

        @OptionGroup var whose: Whose
        @Argument var key: String
        @Argument var value: String?
        @Option(
            name: .long,
            help: ArgumentHelp("string, integer, number, bool, date, data or json.", valueName: "kind"))
        var type: Kind?
        @Option(
            name: .long, help: ArgumentHelp("Take the value from this file.", valueName: "file"))
        var file: PathArgument?

        func validate() throws {
            try RawArguments.checkIsText(key, "the key")
            if (value == nil) == (file == nil) {
                throw ValidationError(
                    "say the value, or with --file where it is; a value that begins with '-' follows '--', as in: "
                        + "kv set --type integer offset -- -5")
            }
        }

        func run() async throws {
            let kept = try await kept()
            try await whose.store().set(kept, for: key)
            if whose.output.json {
                Output.json(KeptValueDocument(application: whose.app, key: key, value: kept))
            }
        }

        private func kept() async throws -> KeptValue {
            var bytes = RawArguments.bytes(of: value ?? "")
            if let file {
                let limit = RequestLimit.valueByteCountMax
                guard let read = await Blocking.run({ readSmallFile(file.bytes, countMax: limit) })
                else {
                    let shown = escapedForDisplay(file.bytes)
                    throw CommandFailure("\(shown) cannot be read: check its name and permissions")
                }
                bytes = read
            }
            let kind = type ?? (file == nil ? .string : .data)
            if kind == .data { return KeptValue(data: bytes) }
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw CommandFailure(
                    "the value is not UTF-8: keep it with --type data", exitStatus: ExitStatus.usage
                )
            }
            let kept: KeptValue? =
                switch kind {
                case .string: .string(text)
                case .integer: Int64(text).map { .integer($0) }
                case .number: Double(text).flatMap { $0.isFinite ? .number($0) : nil }
                case .bool: Bool(text).map { .bool($0) }
                case .date: DateLiteral.nanoseconds(bytes).map { .date(nanoseconds: $0) }
                case .json: WireCoding.decode(KeptValue.self, from: bytes)
                case .data: nil
                }
            guard let kept else {
                let what =
                    kind == .json ? "value with its kind, as {\"integer\": 1}; 'kv set --help' says more" : kind.rawValue
                throw CommandFailure(
                    "'\(text.prefix(80))' is no \(what)", exitStatus: ExitStatus.usage)
            }
            return kept
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove a value.",
            discussion: """
                Ends with status 1 when there is none. With --json it is one object.

                Example:
                  promisefs kv remove --app com.example.editor theme
                """)
        @OptionGroup var whose: Whose
        @Argument var key: String

        func run() async throws {
            guard try await whose.store().removeValue(for: key) else {
                throw CommandFailure(
                    "'\(whose.app)' has no value '\(key)'; 'promisefs kv list' shows those it has")
            }
            if whose.output.json {
                Output.json(KeptValueDocument(application: whose.app, key: key, value: nil))
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the values of an application.",
            discussion: """
                With --json it is one object, which also says why values stay on this machine, where they do.

                Example:
                  promisefs kv list --app com.example.editor
                """)
        @OptionGroup var whose: Whose

        func run() async throws {
            let document = try await whose.store().document()
            if whose.output.json { return Output.json(document) }
            for entry in document.values {
                let text = entry.value?.shown ?? ""
                Output.line(
                    "\(escapedForDisplay(Array(entry.key.utf8))) = \(escapedForDisplay(Array(text.utf8)))"
                )
            }
            if let trouble = document.trouble { Output.problem(trouble) }
        }
    }

    struct Watch: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print what other machines change, until it is stopped.",
            discussion: """
                One line a change: the reason (server-change, initial-sync, quota-violation, account-change) and the keys. With \
                --json it is one object a line.

                Example:
                  promisefs kv watch --app com.example.editor
                """)
        @OptionGroup var whose: Whose

        func run() async throws {
            Interruption.ends()
            for try await event in try await whose.store().events() where event.name == "changed" {
                guard
                    let notice = WireCoding.decode(
                        ValueNoticeDocument.self, from: Array(event.data.utf8))
                else { continue }
                if whose.output.json {
                    Output.json(notice)
                } else {
                    let keys = notice.keys.map { escapedForDisplay(Array($0.utf8)) }
                    Output.line(([notice.reason] + keys).joined(separator: " "))
                }
            }
        }
    }
}

extension KeptValue {
    init(data bytes: [UInt8]) { self = .data(base64: Data(bytes).base64EncodedString()) }

    /// For people, and for scripts where it is text or a number.
    var shown: String {
        switch self {
        case .string(let text): text
        case .integer(let integer): String(integer)
        case .number(let number): number.description
        case .bool(let bool): String(bool)
        case .date(let nanoseconds): TimeText.format(nanoseconds: nanoseconds)
        case .data(let text): text
        case .list, .map: WireCoding.text(self)
        }
    }
}
