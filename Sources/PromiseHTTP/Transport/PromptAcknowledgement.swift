import Glibc
import NIOCore
import NIOHTTP1

/// Acknowledges the first part of a reply at once, when the rest is not here yet.
///
/// A server that does not turn Nagle's algorithm off (RFC 896) and writes the head of a reply and its body one after the other
/// keeps the body until the head is acknowledged, and Linux delays that by 40 ms. Ceph's gateway is one, by default: each GET of
/// a small object and each short listing took 48 ms instead of 1 ms. `TCP_QUICKACK` (tcp(7)) does not last, so it is set for
/// each reply that comes in parts. What is long is acknowledged as it comes, anyway.
final class PromptAcknowledgement: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart

    private static let byteCountMax = 64 << 10
    private static let option = ChannelOptions.tcpOption(.init(rawValue: CInt(TCP_QUICKACK)))

    private var isWhole = true
    private var byteCount = 0

    /// To a connection that speaks HTTP already.
    static func add(to channel: any Channel) -> EventLoopFuture<Void> {
        channel.eventLoop.submit {
            let pipeline = channel.pipeline.syncOperations
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
            try pipeline.addHandler(PromptAcknowledgement(), position: .after(decoder))
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head:
            isWhole = false
            byteCount = 0
        case .body(let part): byteCount += part.readableBytes
        case .end: isWhole = true
        }
        context.fireChannelRead(data)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        // Where it cannot be set, replies only come later.
        if !isWhole, byteCount < Self.byteCountMax { try? context.channel.syncOptions?.setOption(Self.option, value: 1) }
        context.fireChannelReadComplete()
    }
}
