import Glibc
import Logging
import PromiseCore
import PromiseMount
import Testing

/// The errno of each failure is an outside contract: the table says it once more, by number.
@Suite struct ErrnoTests {
    static let table: [Failure.Code: CInt] = [
        .notFound: 2, .gone: 2, .exists: 17, .notFolder: 20, .isFolder: 21, .notEmpty: 39, .crossDevice: 18, .tooManyLinks: 31,
        .nameTooLong: 36,
        .notPermitted: 1, .refused: 13, .hydrationRefused: 35, .readOnly: 30, .busy: 16, .conflict: 16,
        .offline: 100, .timedOut: 110, .stale: 116, .corrupted: 5, .interrupted: 4,
        .storeFull: 28, .quotaExceeded: 122, .tooLarge: 27,
        .noAttribute: 61, .attributeTooLarge: 34, .invalid: 22, .notSupported: 95, .outOfRange: 6, .tooManyOpen: 23,
        .inputOutput: 5,
    ]

    /// > Others (`ENOENT`, `EEXIST`, `ENOTDIR`, `EISDIR`, `ENOTEMPTY`, `EPERM`, `EINVAL`, `EMLINK`, `ENAMETOOLONG`, `EFBIG`,
    @Test(arguments: Failure.Code.allCases) func everyCodeHasItsNumber(code: Failure.Code) throws {
        #expect(code.errorNumber == (try #require(Self.table[code])))
    }

    /// ENOSYS would switch an operation off for the life of the mount, EAGAIN would make the kernel repeat an interruption.
    @Test(arguments: Failure.Code.allCases) func noFailureLooksLikeAMessageToTheKernel(code: Failure.Code) {
        #expect(code.errorNumber != ENOSYS)
        #expect(code.errorNumber != EAGAIN)
        #expect(code.errorNumber > 0)
    }

    @Test func whatProgramsCauseThemselvesIsNotReported() {
        for code in Failure.Code.allCases where code.logLevel >= .warning {
            #expect([.storeFull, .tooManyOpen, .corrupted, .inputOutput].contains(code), "\(code)")
        }
    }
}
