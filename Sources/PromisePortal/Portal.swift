import CSystemBus
import Glibc

/// The back end of the desktop's file dialogs: takes the calls of xdg-desktop-portal, and answers
/// each of them, whatever becomes of the picker that it shows.
///
/// One thread has the bus and all that is under way; a picker is a process of its own, and it alone
/// looks at files, as a mount may be silent for as long as it likes.
final class Portal {
    static let name = "org.freedesktop.impl.portal.desktop.promisefs"
    static let path = "/org/freedesktop/portal/desktop"
    private static let chooser = "org.freedesktop.impl.portal.FileChooser"
    private static let request = "org.freedesktop.impl.portal.Request"

    private struct UnderWay {
        var call: FileChooserCall
        /// Kept until it is answered.
        var message: OpaquePointer
        /// The object that `Close` is called on.
        var object: OpaquePointer?
        var picker: PickerProcess
        var isAtEnd = false
    }

    private let bus: OpaquePointer
    private let command: [[UInt8]]
    private var underWay: [UnderWay] = []
    /// Told to end, and not yet gone.
    private var ending: [pid_t] = []

    /// `command`: what comes before the words of a call.
    init(command: [[UInt8]]) throws(BusError) {
        self.command = command
        var bus: OpaquePointer?
        try BusError.check(sd_bus_open_user(&bus), "connect")
        guard let bus else { throw BusError(number: ENOTCONN, call: "connect") }
        self.bus = bus
    }

    /// Until the bus is gone.
    func serve() throws(BusError) {
        // It is called by `sd_bus_process` alone, which `self` outlives.
        let own = Unmanaged.passUnretained(self).toOpaque()
        try BusError.check(sd_bus_add_object(bus, nil, Portal.path, takeCall, own), "object")
        // A name without an owner from now on: somebody has left the bus.
        try BusError.check(
            sd_bus_add_match(
                bus, nil,
                "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg2=''",
                takeLeaving, own), "match")
        try BusError.check(sd_bus_request_name(bus, Portal.name, 0), "name")
        while true {
            var result: CInt
            repeat { result = sd_bus_process(bus, nil) } while result > 0
            if result < 0 { return endAll() }
            look()
            wait()
        }
    }

    // MARK: Calls

    /// 1: answered, now or later; 0: not ours.
    func take(_ message: OpaquePointer) -> CInt {
        guard let method = sd_bus_message_get_member(message).map({ String(cString: $0) }),
            let interface = sd_bus_message_get_interface(message).map({ String(cString: $0) })
        else { return 0 }
        if interface == Portal.request, method == "Close" { return close(message) }
        guard interface == Portal.chooser, let method = FileChooserCall.Method(rawValue: method)
        else { return 0 }
        guard sd_bus_message_has_signature(message, "osssa{sv}") > 0,
            let values = try? BusReader(message: message).values(),
            let call = FileChooserCall(method, values),
            !underWay.contains(where: { $0.call.handle == call.handle })
        else { return sd_bus_reply_method_errno(message, EINVAL, nil) }
        let words = [Array("--while=\(getpid())".utf8)] + call.words(views: views(of: call))
        guard let picker = PickerProcess(command + words) else {
            return refuse(message)
        }
        var object: OpaquePointer?
        let own = Unmanaged.passUnretained(self).toOpaque()
        if sd_bus_add_object(bus, &object, call.handle, takeCall, own) < 0 { object = nil }
        underWay.append(
            UnderWay(
                call: call, message: sd_bus_message_ref(message), object: object, picker: picker))
        return 1
    }

    /// Where a program in a sandbox has its views; nil for one in none, which sees the mounts itself.
    private func views(of call: FileChooserCall) -> [UInt8]? {
        let name = Array(call.application.utf8)
        guard FileChooserCall.isName(name), let sender = call.sender, isSandboxed(sender),
            let folder = getenv("XDG_RUNTIME_DIR").map({ String(cString: $0) }), folder.hasPrefix("/")
        else { return nil }
        return Array("\(folder)/promisefs-portal/".utf8) + name
    }

    /// As the front end finds it out: Flatpak has a file in the sandbox, Snap a control group.
    private func isSandboxed(_ sender: String) -> Bool {
        var credentials: OpaquePointer?
        defer { sd_bus_creds_unref(credentials) }
        var process = pid_t()
        // SD_BUS_CREDS_PID of sd_bus_creds_get_pid(3).
        guard sd_bus_get_name_creds(bus, sender, 1, &credentials) >= 0, let known = credentials,
            sd_bus_creds_get_pid(known, &process) >= 0
        else { return false }
        if access("/proc/\(process)/root/.flatpak-info", F_OK) == 0 { return true }
        let groups = open("/proc/\(process)/cgroup", O_RDONLY | O_CLOEXEC)
        guard groups >= 0 else { return false }
        defer { Glibc.close(groups) }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = max(0, read(groups, &buffer, buffer.count))
        return String(decoding: buffer[..<count], as: UTF8.self).contains("/snap.")
    }

    /// The front end wants no answer any more; it gets one all the same.
    private func close(_ message: OpaquePointer) -> CInt {
        let path = sd_bus_message_get_path(message).map { String(cString: $0) } ?? ""
        guard let index = underWay.firstIndex(where: { $0.call.handle == path }) else { return 0 }
        let item = underWay.remove(at: index)
        end(item.picker)
        _ = refuse(item.message)
        forget(item)
        var reply: OpaquePointer?
        defer { sd_bus_message_unref(reply) }
        guard sd_bus_message_new_method_return(message, &reply) >= 0 else { return -ENOMEM }
        return sd_bus_send(bus, reply, nil)
    }

    /// Whoever has called and is gone can show no answer to anybody: its pickers end.
    func leave(_ message: OpaquePointer) {
        guard let name = (try? BusReader(message: message).values())?.first?.text else { return }
        let left = underWay.filter {
            sd_bus_message_get_sender($0.message).map { String(cString: $0) } == name
        }
        for item in left {
            underWay.removeAll { $0.picker.process == item.picker.process }
            end(item.picker)
            forget(item)
        }
    }

    // MARK: Answers

    /// Takes what pickers have said, and answers for those that have ended.
    private func look() {
        for index in underWay.indices where !underWay[index].isAtEnd {
            underWay[index].isAtEnd = !underWay[index].picker.read()
        }
        for item in underWay where item.isAtEnd {
            guard let status = PickerProcess.status(of: item.picker.process) else { continue }
            underWay.removeAll { $0.picker.process == item.picker.process }
            Glibc.close(item.picker.output)
            switch status {
            case 0 where !item.picker.paths.isEmpty:
                answer(item, item.picker.paths, item.picker.chosen)
            case 1: answer(item, nil, [:])
            default: _ = refuse(item.message)
            }
            forget(item)
        }
        ending.removeAll { PickerProcess.status(of: $0) != nil }
    }

    private func answer(_ item: UnderWay, _ paths: [[UInt8]]?, _ chosen: [Int: Int]) {
        var reply: OpaquePointer?
        do throws(BusError) {
            try BusError.check(sd_bus_message_new_method_return(item.message, &reply), "reply")
            guard let made = reply else { throw BusError(number: ENOMEM, call: "reply") }
            try item.call.answer(paths, chosen: chosen, to: BusWriter(message: made))
            try BusError.check(sd_bus_send(bus, made, nil), "send")
        } catch {
            _ = refuse(item.message)
        }
        sd_bus_message_unref(reply)
    }

    /// 2 of `Response`: it ended in some other way.
    private func refuse(_ message: OpaquePointer) -> CInt {
        var reply: OpaquePointer?
        defer { sd_bus_message_unref(reply) }
        do throws(BusError) {
            try BusError.check(sd_bus_message_new_method_return(message, &reply), "reply")
            guard let made = reply else { throw BusError(number: ENOMEM, call: "reply") }
            let writer = BusWriter(message: made)
            try writer.number(2)
            try writer.container("a", "{sv}") { () throws(BusError) in }
            return try BusError.check(sd_bus_send(bus, made, nil), "send")
        } catch {
            return sd_bus_reply_method_errno(message, error.number, nil)
        }
    }

    private func forget(_ item: UnderWay) {
        sd_bus_slot_unref(item.object)
        sd_bus_message_unref(item.message)
    }

    private func end(_ picker: PickerProcess) {
        kill(picker.process, SIGTERM)
        Glibc.close(picker.output)
        ending.append(picker.process)
    }

    private func endAll() { for item in underWay { kill(item.picker.process, SIGTERM) } }

    // MARK: Waiting

    private func wait() {
        var files = [pollfd(fd: sd_bus_get_fd(bus), events: 0, revents: 0)]
        files[0].events = Int16(truncatingIfNeeded: sd_bus_get_events(bus))
        for item in underWay where !item.isAtEnd {
            files.append(pollfd(fd: item.picker.output, events: Int16(POLLIN), revents: 0))
        }
        // Nothing tells that a process has gone: those at their end are looked at again.
        let isClose = !ending.isEmpty || underWay.contains { $0.isAtEnd }
        poll(&files, nfds_t(files.count), min(isClose ? 20 : CInt.max, timeout))
    }

    /// Milliseconds until the bus wants to be processed.
    private var timeout: CInt {
        var until: UInt64 = 0
        guard sd_bus_get_timeout(bus, &until) >= 0, until != .max else { return CInt.max }
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let elapsed = UInt64(now.tv_sec) * 1_000_000 + UInt64(now.tv_nsec) / 1000
        return until > elapsed ? CInt(clamping: (until - elapsed) / 1000 + 1) : 0
    }
}

/// For sd-bus, which calls no method. `data` is the portal.
private func takeCall(
    _ message: OpaquePointer?, _ data: UnsafeMutableRawPointer?,
    _ error: UnsafeMutablePointer<sd_bus_error>?
) -> CInt {
    guard let message, let data else { return 0 }
    return Unmanaged<Portal>.fromOpaque(data).takeUnretainedValue().take(message)
}

/// As `takeCall`, of a signal.
private func takeLeaving(
    _ message: OpaquePointer?, _ data: UnsafeMutableRawPointer?,
    _ error: UnsafeMutablePointer<sd_bus_error>?
) -> CInt {
    guard let message, let data else { return 0 }
    Unmanaged<Portal>.fromOpaque(data).takeUnretainedValue().leave(message)
    return 0
}
