import Glibc

/// The memory of all renderings under way: each takes, before it decodes a pixel, what it is estimated to need (``RenderPlan/memory``),
/// and waits on its thread until that is free. They are served as they came, so that a large one is not kept waiting by small ones.
///
/// What needs more than there is at all has it to itself. Children that are idle hold memory too (``rest(_:)``): they are
/// ended when a rendering needs it.
///
/// `@unchecked Sendable`: all that varies is touched only with `mutex` held.
final class DecodingMemory: @unchecked Sendable {
    /// Bytes that a rendering has. It gives them back at the latest when nobody holds it.
    final class Share: Sendable {
        private let memory: DecodingMemory
        private let bytes: Int
        private let isResting: Bool

        fileprivate init(_ memory: DecodingMemory, _ bytes: Int, isResting: Bool) {
            self.memory = memory
            self.bytes = bytes
            self.isResting = isResting
        }

        deinit { memory.giveBack(bytes, isResting: isResting) }
    }

    /// Bytes of all together.
    let limit: Int

    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var taken = 0
    /// Renderings that have taken some.
    private var renderings = 0
    /// Bytes that idle children hold.
    private var resting = 0
    /// Numbers of those who wait, as they came.
    private var queue: [UInt64] = []
    private var numbers: UInt64 = 0

    init(limit: Int) {
        self.limit = limit
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(changed, nil)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    /// Bytes that renderings have taken, and how many renderings wait for theirs.
    var use: (taken: Int, waiting: Int) {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return (taken, queue.count)
    }

    /// Takes what is free, unless others wait for it.
    /// - Returns: nil when it has to be waited for.
    func share(_ bytes: Int) -> Share? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return queue.isEmpty ? takeIfFree(bytes) : nil
    }

    /// Takes what is free for a child that is idle, unless renderings wait for it.
    func rest(_ bytes: Int) -> Share? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard queue.isEmpty, bytes <= limit - taken - resting else { return nil }
        resting += bytes
        return Share(self, bytes, isResting: true)
    }

    /// Waits on the calling thread until the bytes are free.
    /// - Parameter isStopped: asked whenever something has changed, or ``wake()`` was called, with the mutex held.
    /// - Returns: nil when it was stopped first.
    func wait(for bytes: Int, unless isStopped: () -> Bool) -> Share? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        numbers += 1
        let number = numbers
        queue.append(number)
        while true {
            if isStopped() {
                queue.removeAll { $0 == number }
                // It may have stood before one that has room.
                pthread_cond_broadcast(changed)
                return nil
            }
            if queue.first == number, let share = takeIfFree(bytes) {
                queue.removeFirst()
                pthread_cond_broadcast(changed)
                return share
            }
            pthread_cond_wait(changed, mutex)
        }
    }

    /// Has all who wait look whether they were stopped.
    func wake() {
        pthread_mutex_lock(mutex)
        pthread_cond_broadcast(changed)
        pthread_mutex_unlock(mutex)
    }

    /// With the mutex held.
    private func takeIfFree(_ bytes: Int) -> Share? {
        guard renderings == 0 || bytes <= limit - taken - resting else { return nil }
        taken += bytes
        renderings += 1
        return Share(self, bytes, isResting: false)
    }

    private func giveBack(_ bytes: Int, isResting: Bool) {
        pthread_mutex_lock(mutex)
        if isResting {
            resting -= bytes
        } else {
            taken -= bytes
            renderings -= 1
        }
        pthread_cond_broadcast(changed)
        pthread_mutex_unlock(mutex)
    }
}

/// Where one rendering gets its memory, on its thread.
struct MemoryDoor {
    let memory: DecodingMemory
    let turn: Turn
    let clock: TurnClock
    /// Ends the children that are idle.
    var makeRoom: () -> Void = {}

    /// Waits until there is room. Its time does not pass meanwhile: that others take the memory is no fault of its own. Whoever stops
    /// the turn calls ``DecodingMemory/wake()`` too.
    /// - Throws: why it was stopped first.
    func enter(_ bytes: Int) throws(Turn.Stop) -> DecodingMemory.Share {
        if let share = memory.share(bytes) { return share }
        makeRoom()
        clock.pause()
        defer { clock.start() }
        guard let share = memory.wait(for: bytes, unless: { turn.stopped != nil }) else {
            throw turn.stopped ?? .cancelled
        }
        return share
    }
}
