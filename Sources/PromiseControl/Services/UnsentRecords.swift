// What applications keep, and attributes of items, that the provider does not have yet.

import PromiseDomain

extension ControlService {
    /// Values of so many applications, containers, and 1 for all attributes.
    var unsentRecords: Int {
        guard let documents else { return keyValues.unsentCount }
        return keyValues.unsentCount + documents.containers.unsentCount + documents.attributes.unsentCount
    }

    func sendRecords(within limit: Duration) async {
        await keyValues.send(within: limit)
        await documents?.attributes.send(within: limit)
        guard let containers = documents?.containers, containers.unsentCount > 0 else { return }
        await containers.send(within: limit)
    }
}
