import PromiseCore
import PromiseIndex
import PromiseProvider
import PromiseTestSupport
import Testing

/// A program saves a document by a new file, and is so slow that the provider sees the new file before it gets the name.
@Suite struct SlowSaveTests {
    enum Way: CaseIterable {
        case overTheDocument, afterItsRemoval, besideIt
    }

    private func save(
        _ way: Way, madeSecondsAgo age: Int64, expectSame isSame: Bool, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.write("old", to: ["document"])
            try await domain.expectBothSidesTheSame("the document")
            let document = try domain.identifier(of: "document")
            try await domain.write("new text", to: ["fresh"])
            try await domain.expectBothSidesTheSame("the new file")
            let fresh = try domain.identifier(of: "fresh")
            try domain.setAge(of: "fresh", seconds: age)
            // Nothing is sent in between.
            await domain.provider.fail(ProviderError(.offline, "the network is gone"))
            switch way {
            case .overTheDocument: break
            case .afterItsRemoval: try await domain.remove(["document"])
            case .besideIt: try await domain.rename(["document"], to: ["aside"])
            }
            try await domain.rename(["fresh"], to: ["document"])
            if way == .besideIt { try await domain.remove(["aside"]) }
            await domain.provider.fail(nil)
            try await domain.expectBothSidesTheSame("after the save")
            #expect(await domain.provider.tree() == ["document=new text"], sourceLocation: sourceLocation)
            let now = try domain.identifier(of: "document")
            #expect(now == (isSame ? document : fresh), "\(way)", sourceLocation: sourceLocation)
        }
    }

    @Test(arguments: Way.allCases) func theDocumentStaysTheItemItWas(_ way: Way) async throws {
        try await save(way, madeSecondsAgo: 300, expectSame: true)
    }

    /// That is a document of its own, of which others may have a reference.
    @Test(arguments: Way.allCases) func whatHasBeenThereForLongKeepsItsIdentifier(_ way: Way) async throws {
        try await save(way, madeSecondsAgo: 3600, expectSame: false)
    }

    /// The document gives way under an ordinary name, and each step may reach the provider before the next one.
    @Test(arguments: 0...4) func aDocumentThatGaveWayStaysTheItemWhateverWasSent(_ pause: Int) async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.write("old", to: ["document"])
            try await domain.expectBothSidesTheSame("the document")
            let document = try domain.identifier(of: "document")
            let steps: [() async throws -> Void] = [
                { try await domain.write("new text", to: ["fresh"]) },
                { try await domain.rename(["document"], to: ["aside"]) },
                { try await domain.rename(["fresh"], to: ["document"]) },
                { try await domain.remove(["aside"]) },
            ]
            for (number, step) in steps.enumerated() {
                if number == pause { try await domain.expectBothSidesTheSame("before step \(number)") }
                try await step()
            }
            try await domain.expectBothSidesTheSame("after the save")
            #expect(await domain.provider.tree() == ["document=new text"])
            #expect(try domain.identifier(of: "document") == document)
        }
    }

    /// The item that was being made is the one that goes.
    @Test func aDocumentThatGaveWayStaysTheItemWhileItsNewFileIsMadeAtTheProvider() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.write("old", to: ["document"])
            try await domain.expectBothSidesTheSame("the document")
            let document = try domain.identifier(of: "document")
            let gate = Gate()
            await domain.provider.holdAnswers(at: gate)
            try await domain.write("new text", to: ["fresh"])
            while await !domain.provider.tree().contains("fresh=new text") { try await Task.sleep(for: .milliseconds(1)) }
            try await domain.rename(["document"], to: ["aside"])
            try await domain.rename(["fresh"], to: ["document"])
            try await domain.remove(["aside"])
            await domain.provider.holdAnswers(at: nil)
            gate.open()
            try await domain.expectBothSidesTheSame("after the save")
            #expect(await domain.provider.tree() == ["document=new text"])
            #expect(try domain.identifier(of: "document") == document)
        }
    }

    /// That is a copy and a document of its own.
    @Test func aDocumentThatIsRenamedAndMadeAnewStaysUnderItsNewName() async throws {
        let domain = try SimulatedDomain()
        try await domain.run {
            try await domain.write("old", to: ["document"])
            try await domain.expectBothSidesTheSame("the document")
            let document = try domain.identifier(of: "document")
            try await domain.rename(["document"], to: ["moved"])
            try await domain.write("new text", to: ["document"])
            try await domain.expectBothSidesTheSame("in the end")
            #expect(try domain.identifier(of: "moved") == document)
            #expect(try domain.identifier(of: "document") != document)
        }
    }
}

extension SimulatedDomain {
    fileprivate func identifier(of name: String) throws -> ItemIdentifier? {
        try index.read { transaction throws(Failure) in
            try transaction.entry(in: .root, named: FileName(name)!)?.identifier
        }
    }

    fileprivate func setAge(of name: String, seconds: Int64) throws {
        try index.write { transaction throws(Failure) in
            guard let entry = try transaction.entry(in: .root, named: FileName(name)!),
                var node = try transaction.node(entry.node)
            else { return }
            node.birthTime = node.birthTime.advanced(by: .seconds(-seconds))
            try transaction.update(node)
        }
    }
}
