/// What one application may keep.
package struct ValueLimits: Hashable, Sendable {
    /// Of all values; names do not count.
    package var totalByteCount: Int
    package var valueByteCount: Int
    package var keyCount: Int
    /// Of a name, as UTF-8.
    package var nameByteCount: Int

    package init(
        totalByteCount: Int = 64 << 10, valueByteCount: Int = 64 << 10, keyCount: Int = 1024,
        nameByteCount: Int = 64
    ) {
        self.totalByteCount = totalByteCount
        self.valueByteCount = valueByteCount
        self.keyCount = keyCount
        self.nameByteCount = nameByteCount
    }
}

/// A value that was not taken; what was under the key is there still.
package struct ValueRefusal: Error, Hashable, Sendable {
    package enum Reason: Hashable, Sendable {
        /// There is no room for it.
        case quota
        /// It can never be kept, however much room there is.
        case form
    }

    package let reason: Reason
    package let message: String
}

extension ValueLimits {
    /// Of the value by itself.
    func check(_ value: Value, for key: Key) throws(ValueRefusal) {
        if key.byteCount == 0 {
            throw ValueRefusal(reason: .form, message: "the key is empty: give it a name")
        }
        if key.byteCount > nameByteCount {
            throw ValueRefusal(
                reason: .form,
                message:
                    "the key has \(key.byteCount) bytes; a key has at most \(nameByteCount): shorten it"
            )
        }
        // First, as what follows is recursive.
        if value.depth > Value.depthMax {
            throw ValueRefusal(
                reason: .form,
                message:
                    "the value has lists or maps in each other more than \(Value.depthMax) deep: flatten it"
            )
        }
        if !value.isFinite {
            throw ValueRefusal(
                reason: .form, message: "a number is infinite or none at all: keep it as a string")
        }
        let count = value.byteCount
        if count > valueByteCount {
            throw ValueRefusal(
                reason: .quota,
                message:
                    "the value has \(count) bytes; a value has at most \(valueByteCount): keep it in a file"
            )
        }
    }

    func fits(_ record: ValueRecord) -> Bool {
        record.keyCount <= keyCount && record.byteCount <= totalByteCount
    }
}
