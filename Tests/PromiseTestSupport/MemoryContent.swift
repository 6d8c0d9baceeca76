package import PromiseProvider

/// A content to send, made from bytes. Import PromiseProvider for its members.
package typealias MemorySource = ConformanceSource

/// Takes a content into memory and counts what came. Import PromiseProvider for its members.
package typealias MemorySink = ConformanceSink
