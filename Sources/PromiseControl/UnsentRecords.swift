// What applications keep, and the provider does not have yet.

import PromiseDomain

extension ControlService {
    /// Values of so many applications, and containers.
    var unsentRecords: Int { keyValues.unsentCount + (documents?.containers.unsentCount ?? 0) }

    func sendRecords(within limit: Duration) async {
        await keyValues.send(within: limit)
        guard let containers = documents?.containers, containers.unsentCount > 0 else { return }
        await containers.send(within: limit)
    }
}
