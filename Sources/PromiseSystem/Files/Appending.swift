import CPromiseSystem

/// Writes at the end of a file, wherever that is by then: nobody's bytes are overwritten, as by
/// O_APPEND, whoever else writes there. Each system call puts its bytes behind one another.
/// `isMoved`: the bytes are not where `offset` was thought to be the end.
package func appendSome(
    _ descriptor: CInt, _ bytes: UnsafeRawBufferPointer, at offset: UInt64, label: StaticString
) -> (count: Int, problem: SystemError?, isMoved: Bool) {
    var done = 0
    var problem: SystemError?
    do throws(SystemError) {
        while done < bytes.count {
            let start = bytes.baseAddress! + done
            let rest = FaultInjection.accepted(bytes.count - done, label)
            done += Int(try call(label) { cps_append(descriptor, start, rest) })
        }
    } catch {
        problem = error
    }
    let size = try? FileStatus.of(descriptor: descriptor, label: "content.append.after").size
    return (done, problem, size != offset + UInt64(done))
}
