import Testing

@testable import promisefs

@Suite struct QuantityTests {
    @Test(
        arguments: [
            ("1024", 1024), ("0", 0), ("500M", 500 << 20), ("10G", 10 << 30), ("10g", 10 << 30), ("1.5GiB", 3 << 29),
            ("2KiB", 2048), ("2kB", 2000),
            ("3 MB", 3_000_000), ("1T", 1 << 40), ("7B", 7),
        ] as [(String, UInt64)])
    func sizesAreRead(text: String, bytes: UInt64) { #expect(ByteSize(argument: text)?.bytes == bytes) }

    @Test(arguments: ["", "G", "-1", "1X", "1.2.3", ".5", "1GiBs", "1e3", "99999999E", "٣", "0x10", "nan", "inf"])
    func badSizesAreRefused(text: String) { #expect(ByteSize(argument: text) == nil) }

    @Test(arguments: [
        ("500ms", Duration.milliseconds(500)), ("2s", .seconds(2)), ("5m", .seconds(300)), ("1h", .seconds(3600)),
        ("1.5h", .seconds(5400)),
        ("3", .seconds(3)), ("0", .zero), ("1d", .seconds(86400)),
    ])
    func durationsAreRead(text: String, duration: Duration) { #expect(TimeSpan(argument: text)?.duration == duration) }

    @Test(arguments: ["", "s", "-1s", "1w", "1 y", "5ms5", "9999999999h"])
    func badDurationsAreRefused(text: String) { #expect(TimeSpan(argument: text) == nil) }

    @Test func durationsAreHandedOnExactly() {
        for text in ["500ms", "2s", "90m", "0"] {
            let duration = TimeSpan(argument: text)!.duration
            #expect(TimeSpan(argument: TimeSpan.argument(duration))?.duration == duration)
        }
    }

    @Test(
        arguments: [
            (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_258_291, "1.2 MiB"), (1_048_575, "1.0 MiB"), (.max, "16.0 EiB"),
        ] as [(UInt64, String)])
    func sizesAreShown(bytes: UInt64, text: String) { #expect(ByteSize.text(bytes) == text) }

    @Test func tablesAreAligned() {
        #expect(table([["a", "x"], ["long", "y"]]) == "a     x\nlong  y\n")
        #expect(table([]) == "")
    }
}
