import CPromiseSystem

/// What a process with many threads keeps of memory that it no longer uses.
package enum ProcessMemory {
    /// To be called before threads start. An arena for each of many threads keeps what one of them needed once
    /// (mallopt(3), M_ARENA_MAX).
    package static func shareArenas() { cps_share_arenas() }

    /// Gives free memory back to the system; takes some milliseconds (malloc_trim(3)). Thread-safe.
    package static func giveBack() { cps_give_memory_back() }
}
