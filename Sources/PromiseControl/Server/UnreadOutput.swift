import NIOCore

/// Ends a connection whose client reads nothing of what is sent to it: a stream of events would wait
/// for it for ever, with its descriptor and all that is to be told. The client learns it by the end.
///
/// On the connection's own event loop, first in its pipeline.
final class UnreadOutput: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let patience: TimeAmount
    /// Pieces that the kernel has not taken yet.
    private var waitingCount = 0
    private var lastTaken = NIODeadline.now()
    /// Holds the connection, and so goes with it.
    private var watch: Scheduled<Void>?

    init(patience: Duration) {
        self.patience = TimeAmount(patience)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let taken = promise ?? context.eventLoop.makePromise(of: Void.self)
        if waitingCount == 0 { lastTaken = .now() }
        waitingCount += 1
        taken.futureResult.assumeIsolated().whenComplete { _ in
            self.waitingCount -= 1
            self.lastTaken = .now()
        }
        context.write(data, promise: taken)
        watch(context.channel)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        watch?.cancel()
        watch = nil
    }

    private func watch(_ channel: any Channel) {
        guard watch == nil else { return }
        watch = channel.eventLoop.assumeIsolated().scheduleTask(deadline: lastTaken + patience) { () -> Void in
            self.watch = nil
            guard self.waitingCount > 0 else { return }
            if NIODeadline.now() - self.lastTaken < self.patience { return self.watch(channel) }
            channel.close(promise: nil)
        }
    }
}
