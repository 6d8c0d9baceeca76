import Glibc
import PromiseKit
import Testing

@testable import promisefs

@Suite struct TargetTests {
    private func location(of word: String, domain: String, namesDomain: Bool) throws -> Location {
        let options = "rw,user_id=\(geteuid())"
        let line = "40 22 0:44 / /nowhere/mount rw - fuse.promisefs \(domain) \(options)"
        let table = MountTable(parsing: line.utf8)
        return try Targets.location(of: Array(word.utf8), in: table, namesDomain: namesDomain)
    }

    /// `unmount /m /m/inner` was refused, as the outer one was in use.
    @Test func whatIsMountedInsideAnotherIsUnmountedBeforeIt() {
        func order(_ places: [String?]) -> [Int] {
            UnmountCommand.order(of: places.map { $0.map { Array($0.utf8) } })
        }
        #expect(order(["/m", "/m/inner"]) == [1, 0])
        #expect(order(["/m", "/n", "/m/x/y", nil, "/m/x", "/mm"]) == [2, 4, 0, 1, 3, 5])
        #expect(order(["/", "/b", "/a"]) == [1, 2, 0])
        #expect(order(["/b", "/a", "/a"]) == [0, 1, 2])
    }

    /// Of two domains of one name the one that was not mounted was in no list: its changes waited unseen.
    @Test func anotherDomainOfTheNameOfAMountedOneIsNotMounted() {
        let places = ["/state/work", "/elsewhere/work"].map {
            StatePlaces.Place(name: "work", folder: Array($0.utf8))
        }
        let alone = StatePlaces.Place(name: "alone", folder: Array("/state/alone".utf8))
        func left(_ mounted: [String: String?]) -> [StatePlaces.Place] {
            UnmountedDomains.unmounted(places + [alone], but: mounted)
        }
        #expect(left(["work": "/elsewhere/work"]) == [places[0], alone])
        // Where nobody says which it is, nothing is said of either.
        let silent: [String: String?] = ["work": nil]
        #expect(left(silent) == [alone])
        #expect(left(["alone": "/another/spelling"]) == places)
        #expect(UnmountedDomains.isSame(Array("/state/./w/".utf8), "/state/w"))
    }

    /// `promisefs evict work` beside a folder `work` was about the whole domain of that name.
    @Test func aFolderThatIsHereIsNotTheDomainOfItsName() throws {
        let error = #expect(throws: PromiseError.self) {
            _ = try location(of: "/usr", domain: "/usr", namesDomain: false)
        }
        #expect(error?.kind == .notPromiseFS && error?.exitStatus == 3)
        #expect(try location(of: "/usr", domain: "/usr", namesDomain: true).isMountPoint)
        let word = "no-such-word-here"
        #expect(try location(of: word, domain: word, namesDomain: false).isMountPoint)
    }
}
