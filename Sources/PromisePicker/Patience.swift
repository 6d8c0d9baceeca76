/// Asking several daemons of which one may say nothing for long: the others are not to wait for it.
enum Patience {
    /// A person looks at an empty list until then.
    static let time = Duration.seconds(4)
    /// So long it is not asked again where others have answered.
    static let rest = Duration.seconds(15)

    /// Nil when it takes longer; then what was asked is cancelled.
    static func answer<Value: Sendable>(
        of body: @escaping @Sendable () async -> Value
    ) async -> Value? {
        await withTaskGroup(of: Value?.self) { group in
            group.addTask { await body() }
            group.addTask {
                try? await Task.sleep(for: time)
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            return first
        }
    }
}
