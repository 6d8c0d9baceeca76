import Foundation
import Testing

/// What a command left behind.
struct ShellResult: Sendable {
    let status: Int32
    let output: String
    let error: String
    /// The command that failed, with its line, where one did.
    let trace: String
    let elapsed: Duration

    /// Of `timeout`, when it had to end the command.
    static let timedOut: Int32 = 124

    var text: String { output.trimmingCharacters(in: .whitespacesAndNewlines) }
    var errorText: String { error.trimmingCharacters(in: .whitespacesAndNewlines) }
}

/// Runs `script` in bash, in a process group that is ended as a whole when the time is over. The output goes to files, so
/// that a daemon left in the background holds no pipe of ours. The waiting is done by a thread of its own.
func runShell(
    _ script: String, environment: [String: String] = [:], seconds: Int = 60, scratch: String = NSTemporaryDirectory()
) async throws -> ShellResult {
    // So that the trace counts the lines of the script alone.
    let numberedFromOne = shellPrelude.replacing("BEFORE", with: "\(shellPrelude.count { $0 == "\n" })")
    let stem = scratch + "/shell-\(UInt64.random(in: 0 ... .max))"
    defer {
        for suffix in ["out", "err", "trace"] { try? FileManager.default.removeItem(atPath: "\(stem).\(suffix)") }
    }
    let arguments = ["timeout", "--kill-after=5", "\(seconds)", "bash", "-c", numberedFromOne + script]
    let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        .merging(["SHELL_TRACE": "\(stem).trace"]) { $1 }
    let clock = ContinuousClock()
    let start = clock.now
    let status: Int32 = try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread {
            continuation.resume(
                with: Result { try spawnAndWait(arguments, variables, output: "\(stem).out", error: "\(stem).err") })
        }
    }
    return ShellResult(
        status: status, output: readText("\(stem).out"), error: readText("\(stem).err"), trace: readText("\(stem).trace"),
        elapsed: clock.now - start)
}

/// posix_spawnp(3) and waitpid(2). Foundation's `Process` is not used as it waits for everybody who inherited its socket, a
/// daemon in the background included. Gives the exit status, or 128 and the signal, as a shell does.
private func spawnAndWait(
    _ arguments: [String], _ environment: [String: String], output: String, error: String
) throws -> Int32 {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    posix_spawn_file_actions_addopen(&actions, 2, error, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The threads of a test process block signals and a background job ignores SIGINT; programs start with neither.
    var noSignals = sigset_t()
    var allSignals = sigset_t()
    sigemptyset(&noSignals)
    sigfillset(&allSignals)
    posix_spawnattr_setsigmask(&attributes, &noSignals)
    posix_spawnattr_setsigdefault(&attributes, &allSignals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    let words = arguments.map { strdup($0) } + [nil]
    let variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for pointer in words + variables { free(pointer) } }
    var process: pid_t = 0
    let problem = posix_spawnp(&process, arguments[0], &actions, &attributes, words, variables)
    guard problem == 0 else { throw HarnessError("cannot start \(arguments[0]): \(String(cString: strerror(problem)))") }
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 {
        guard errno == EINTR else { throw HarnessError("cannot wait: \(String(cString: strerror(errno)))") }
    }
    return status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + status & 0x7F
}

/// `within SECONDS CONDITION` waits for a condition, and fails when it does not come true in time. It waits for 20 s at
/// least: who waits for what comes has it at once, and a machine that does other work may stand still for seconds.
/// `gone PROCESS`: it has ended, whether somebody has asked for its status or not. `not COMMAND` fails when the command does
/// not (`! COMMAND` would be ignored by `set -e`). The command that ends a script is noted in its trace.
private let shellPrelude = """
    set -Eeuo pipefail
    trap 'echo "line $((LINENO - BEFORE)): $BASH_COMMAND" >> "$SHELL_TRACE"' ERR
    not() {
        if "$@"; then echo "succeeded: $*" >&2; return 1; fi
    }
    within() {
        local end=$(( $(date +%s%N) + ($1 < 20 ? 20 : $1) * 1000000000 )); shift
        until eval "$*" 2>/dev/null; do
            [ "$(date +%s%N)" -lt "$end" ] || { echo "not in time: $*" >&2; return 1; }
            sleep 0.02
        done
    }
    gone() { ! readlink "/proc/$1/exe" > /dev/null 2>&1; }

    """

private func readText(_ path: String) -> String {
    String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
}

struct HarnessError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
