package import NIOCore

/// Runs tasks on the thread of an event loop. What a task asks of a connection of that loop, and what comes back, then wakes no
/// other thread, which would cost several times what most requests cost. Nothing that runs there may block.
package final class LoopExecutor: TaskExecutor {
    private let loop: any EventLoop

    package init(loop: any EventLoop) { self.loop = loop }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
