import PromiseCore
import Testing

@Suite struct ProviderFaultsTests {
    @Test func everyLineThatMeansSomethingIsTaken() {
        let text = """
            # slow, and then away
            delay=1500ms
            offline = true
            hang=false
            fail=3
            bandwidth=100000
            short=true
            stale=true

            only=fetchContents, create
            """
        var faults = ProviderFaults()
        (faults.delay, faults.isOffline, faults.isShort, faults.isStale) = (.milliseconds(1500), true, true, true)
        (faults.failurePeriod, faults.bandwidth, faults.calls) = (3, 100_000, [.fetchContents, .create])
        #expect(ProviderFaults(parsing: text) == faults)
        #expect(ProviderFaults.problem(in: text) == nil && ProviderFaults.problem(in: "") == nil)
        #expect(ProviderFaults(parsing: "delay=2.5s").delay == .milliseconds(2500))
    }

    @Test(arguments: [
        "nonsense", "ofline=true", "offline=yes", "offline", "delay=2", "delay=-1s", "delay=soon", "delay=nans", "fail=0",
        "fail=x", "bandwidth=-1", "bandwidth=1M", "only=fetchContent", "only=", "=true",
    ])
    func aLineThatMeansNothingIsNamedAndDoesNothing(line: String) {
        #expect(ProviderFaults.problem(in: "delay=1s\n\(line)\n")?.hasPrefix("line 2 means nothing: '\(line)'; ") == true)
        let faults = ProviderFaults(parsing: line)
        #expect(faults.delay == .zero && !faults.isOffline && faults.failurePeriod == nil && faults.bandwidth == nil)
    }

    @Test func onlyTheCallsThatAreNamedAreConcerned() {
        let faults = ProviderFaults(parsing: "only=create")
        #expect(faults.concern(.create) && !faults.concern(.modify) && ProviderFaults().concern(.modify))
    }
}
