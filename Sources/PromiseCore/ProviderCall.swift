/// A call of the provider protocol, as people name it.
package enum ProviderCall: String, Sendable, CaseIterable {
    case connect, root, item, enumerateItems, currentAnchor, changes, waitForChanges
    case fetchContents, create, modify, delete
    case fetchThumbnail, saveThumbnail, quota, pickerPage
    case persistentIdentifier, identifierOfPersistent, earlierVersions, contentsReleased
    case readObject, writeObject, listObjects, deleteObject
}
