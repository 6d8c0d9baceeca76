import PromiseCore
import PromiseSystem

/// What a check found: a sentence for each problem that is left, and for each that was mended.
struct RecordFindings: Sendable {
    var problems: [String] = []
    var repaired: [String] = []

    mutating func add(_ other: RecordFindings) {
        problems += other.problems
        repaired += other.repaired
    }

    /// `mend` says what was done; a sentence that begins with why it could not be is a problem.
    mutating func note(
        _ problem: String, isRepairing: Bool, mend: () throws(Failure) -> String
    ) {
        guard isRepairing else { return problems.append(problem) }
        do throws(Failure) {
            repaired.append(problem + "; " + (try mend()))
        } catch {
            problems.append(problem + ", and cannot be mended: \(error.message)")
        }
    }
}

/// Where damaged records are put, so that none is destroyed: `kept` in the state folder.
struct RecordShelf: Sendable {
    private static let countMax = 1_000

    let folder: [UInt8]

    init(stateFolder: [UInt8]) { folder = stateFolder + Array("/kept".utf8) }

    /// Returns where it is now.
    func keep(_ bytes: [UInt8], as name: String) throws(Failure) -> String {
        let path = try place(for: name)
        try replaceStateFile(path, by: bytes)
        return escapedForDisplay(path)
    }

    /// Where nothing is yet.
    func place(for name: String) throws(Failure) -> [UInt8] {
        do throws(SystemError) { try makeFolders(folder, label: "records.kept") } catch { throw Failure(error) }
        for number in 0..<RecordShelf.countMax {
            let path = folder + [0x2F] + Array((number == 0 ? name : "\(name).\(number)").utf8)
            if (try? FileStatus.of(path, label: "records.status")) == nil { return path }
        }
        throw Failure(.exists, "there are \(RecordShelf.countMax) of that name in '\(escapedForDisplay(folder))'")
    }

    /// A file of the state folder goes there, as far as it can be read.
    func setAside(_ path: [UInt8], as name: String) throws(Failure) -> String {
        guard let bytes = readSmallFile(path, countMax: 64 << 20) else {
            throw Failure(.inputOutput, "'\(escapedForDisplay(path))' cannot be read: check the disk")
        }
        let place = try keep(bytes, as: name)
        do throws(SystemError) { try unlink(path, label: "records.remove") } catch { throw Failure(error) }
        return place
    }
}
