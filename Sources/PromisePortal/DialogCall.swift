import CSystemBus
import Glibc

/// Shows a dialog of the desktop as one of its programs does, by
/// org.freedesktop.portal.FileChooser, and waits for what the person says.
///
/// `promisefs-portal --ask METHOD TITLE [name=NAME] [at=FOLDER] [type=TYPE]… [multiple]
/// [directory]`: paths are printed, each with a NUL behind it. Exit status 1: cancelled; 2: it
/// ended otherwise; 9: there is no such dialog.
struct DialogCall {
    private static let service = "org.freedesktop.portal.Desktop"
    private static let path = "/org/freedesktop/portal/desktop"

    private let method: String
    private let title: String
    /// Of `current_name`.
    private var name: String?
    private var folder: [UInt8]?
    /// MIME types, and ends of names as `*.txt`.
    private var types: [String] = []
    private var flags: [String] = []

    /// Nil for words that are none.
    init?(_ words: [[UInt8]]) {
        let texts = words.map { String(decoding: $0, as: UTF8.self) }
        guard texts.count >= 2, ["OpenFile", "SaveFile"].contains(texts[0]) else { return nil }
        method = texts[0]
        title = texts[1]
        for (word, text) in zip(words, texts).dropFirst(2) {
            let value = word.firstIndex(of: UInt8(ascii: "=")).map { Array(word[($0 + 1)...]) }
            switch text.prefix(while: { $0 != "=" }) {
            case "name": name = value.map { String(decoding: $0, as: UTF8.self) }
            case "at": folder = value
            case "type": types += value.map { [String(decoding: $0, as: UTF8.self)] } ?? []
            case "multiple", "directory": flags.append(text)
            default: return nil
            }
        }
    }

    /// The exit status.
    func run() throws(BusError) -> CInt {
        var opened: OpaquePointer?
        try BusError.check(sd_bus_open_user(&opened), "connect")
        guard let bus = opened else { throw BusError(number: ENOTCONN, call: "connect") }
        defer { sd_bus_flush_close_unref(bus) }
        var name: UnsafePointer<CChar>?
        try BusError.check(sd_bus_get_unique_name(bus, &name), "name")
        // `:1.42`
        let own = name.map { String(cString: $0) }?.dropFirst() ?? ""
        let token = "promisefs\(getpid())"
        // The portal says so of the object that answers; it is listened to before the call.
        let request =
            DialogCall.path + "/request/" + own.map { $0 == "." ? "_" : String($0) }.joined() + "/"
            + token
        let answer = DialogAnswer()
        let listener = Unmanaged.passUnretained(answer).toOpaque()
        try BusError.check(
            sd_bus_match_signal(
                bus, nil, DialogCall.service, request, "org.freedesktop.portal.Request", "Response",
                takeAnswer, listener), "match")
        // A portal that dies says nothing of its dialogs.
        try BusError.check(
            sd_bus_add_match(
                bus, nil,
                "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',"
                    + "arg0='\(DialogCall.service)'",
                takeOwner, listener), "match")
        try call(bus, token)
        while answer.values == nil {
            let result = try BusError.check(sd_bus_process(bus, nil), "process")
            if result == 0 { try BusError.check(sd_bus_wait(bus, .max), "wait") }
        }
        return withExtendedLifetime(answer) { answer.show() }
    }

    private func call(_ bus: OpaquePointer, _ token: String) throws(BusError) {
        var message: OpaquePointer?
        defer { sd_bus_message_unref(message) }
        try BusError.check(
            sd_bus_message_new_method_call(
                bus, &message, DialogCall.service, DialogCall.path,
                "org.freedesktop.portal.FileChooser", method),
            "message")
        guard let made = message else { throw BusError(number: ENOMEM, call: "message") }
        let writer = BusWriter(message: made)
        // No window that it belongs to.
        try writer.text("")
        try writer.text(title)
        try writer.container("a", "{sv}") { () throws(BusError) in
            try writer.entry("handle_token", "s") { () throws(BusError) in try writer.text(token) }
            try options(writer)
        }
        var reply: OpaquePointer?
        defer { sd_bus_message_unref(reply) }
        try BusError.check(sd_bus_call(bus, made, 30_000_000, nil, &reply), "call")
    }

    private func options(_ writer: BusWriter) throws(BusError) {
        if let name, !name.isEmpty {
            try writer.entry("current_name", "s") { () throws(BusError) in try writer.text(name) }
        }
        if let folder {
            try writer.entry("current_folder", "ay") { () throws(BusError) in
                try writer.path(folder)
            }
        }
        for flag in flags {
            try writer.entry(flag, "b") { () throws(BusError) in try writer.flag(true) }
        }
        if !types.isEmpty { try filter(writer) }
    }

    /// One that admits all of the types.
    private func filter(_ writer: BusWriter) throws(BusError) {
        try writer.entry("filters", "a(sa(us))") { () throws(BusError) in
            try writer.container("a", "(sa(us))") { () throws(BusError) in
                try writer.container("r", "sa(us)") { () throws(BusError) in
                    try writer.text(types.joined(separator: ", "))
                    try writer.container("a", "(us)") { () throws(BusError) in
                        for type in types {
                            try writer.container("r", "us") { () throws(BusError) in
                                try writer.number(type.hasPrefix("*.") ? 0 : 1)
                                try writer.text(type)
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What the request's object has said.
private final class DialogAnswer {
    var values: [BusValue]?

    /// Prints it; the exit status.
    func show() -> CInt {
        guard let values, values.count == 2, let code = values[0].number else { return 2 }
        guard code == 0 else { return code == 1 ? 1 : 2 }
        let entries = (values[1].list ?? []).compactMap(\.list)
        let addresses = entries.first { $0.first?.text == "uris" }?.last?.list ?? []
        var output: [UInt8] = []
        for address in addresses.compactMap(\.text) where address.hasPrefix("file://") {
            output += DialogAnswer.decoded(address.dropFirst("file://".count)) + [0]
        }
        var rest = output[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count)
            }
            guard count > 0 else { return 2 }
            rest = rest.dropFirst(count)
        }
        return output.isEmpty ? 2 : 0
    }

    private static func decoded(_ text: Substring) -> [UInt8] {
        var result: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let first = rest.first {
            let digits = String(decoding: rest.dropFirst().prefix(2), as: UTF8.self)
            if first == UInt8(ascii: "%"), let byte = UInt8(digits, radix: 16) {
                result.append(byte)
                rest = rest.dropFirst(3)
            } else {
                result.append(first)
                rest = rest.dropFirst()
            }
        }
        return result
    }
}

/// For sd-bus, which calls no method. `data` is what is told.
private func takeAnswer(
    _ message: OpaquePointer?, _ data: UnsafeMutableRawPointer?,
    _ error: UnsafeMutablePointer<sd_bus_error>?
) -> CInt {
    guard let message, let data else { return 0 }
    let answer = Unmanaged<DialogAnswer>.fromOpaque(data).takeUnretainedValue()
    answer.values = (try? BusReader(message: message).values()) ?? []
    return 0
}

/// As `takeAnswer`, of the name of the portal: one that is gone answers nothing any more.
private func takeOwner(
    _ message: OpaquePointer?, _ data: UnsafeMutableRawPointer?,
    _ error: UnsafeMutablePointer<sd_bus_error>?
) -> CInt {
    guard let message, let data else { return 0 }
    let answer = Unmanaged<DialogAnswer>.fromOpaque(data).takeUnretainedValue()
    let values = (try? BusReader(message: message).values()) ?? []
    // Name, former owner, owner. It may also just have been started.
    if answer.values == nil, values.last?.text == "" { answer.values = [] }
    return 0
}
