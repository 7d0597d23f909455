import Glibc
import PlainLoop

/// The plain C loops, over files in memory. libvips must have been started.
public enum PlainLoops {
    /// What the loops make of each picture, when nothing else is said: a JPEG of 400×300.
    public static let usual = Output(width: 400, height: 300, suffix: ".jpg[Q=80,strip]")

    /// What the loops make of each picture.
    public struct Output: Sendable {
        /// Pixels across.
        public let width: Int
        /// Pixels down.
        public let height: Int
        /// libvips' name of a file with the saver's options: `.jpg[Q=80,strip]`.
        public let suffix: String

        /// Takes the values as they are.
        public init(width: Int, height: Int, suffix: String) {
            self.width = width
            self.height = height
            self.suffix = suffix
        }
    }

    /// Bytes written by `vips_thumbnail_buffer` over all files.
    public static func thumbnail(_ files: [[UInt8]], _ output: Output = usual) -> Int {
        run(PLAIN_THUMBNAIL, files, output)
    }

    /// Bytes written by the fast loop: the largest shrink on load that does not undershoot, then the resize.
    public static func fast(_ files: [[UInt8]], _ output: Output = usual) -> Int { run(PLAIN_FAST, files, output) }

    private static func run(_ mode: plain_mode, _ files: [[UInt8]], _ output: Output) -> Int {
        // The arrays live in `files` throughout; their storage does not move.
        let places = files.map { $0.withUnsafeBytes { $0.baseAddress } }
        let written = output.suffix.withCString { suffix in
            var wanted = plain_output(width: Int32(output.width), height: Int32(output.height), suffix: suffix)
            return plain_loop(mode, &wanted, places, files.map(\.count), Int32(files.count))
        }
        guard written >= 0 else { exit(1) }
        return written
    }

    /// Events that the plain loop over cached results produced; less than 0 where it failed.
    static func hits(
        brokers: String, jobs: String, partitions: Int, count: Int, events: String, redisPort: Int32, keys: [String],
        event: [UInt8]
    ) -> Int {
        let names = keys.map { strdup($0) }
        defer { for name in names { free(name) } }
        return brokers.withCString { brokers in
            jobs.withCString { jobs in
                events.withCString { events in
                    names.map { UnsafePointer($0) }.withUnsafeBufferPointer { names in
                        event.withUnsafeBytes { event in
                            var run = plain_hits(
                                brokers: brokers, jobs: jobs, partitions: Int32(partitions), count: count,
                                events: events, redis_port: redisPort, keys: names.baseAddress,
                                key_count: Int32(names.count), event: event.baseAddress, event_length: event.count)
                            return plain_hits_loop(&run)
                        }
                    }
                }
            }
        }
    }
}
