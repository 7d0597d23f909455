import Concurrency
import Curl
import Glibc
import HalcyonImaging
import HalcyonSources
import Hashing
import JSON
import Kafka
import Redis
import Subprocess
import Vips

/// Checks the libraries and limits of this machine.
struct HostCheck {
    let fetches: Int
    let concurrency: Int
    let memoryLimit: Int

    /// The library versions.
    var libraries: DoctorReport {
        let versions = [
            "libvips \(VipsLibrary.version)", "libcurl \(CurlLibrary.version)", "librdkafka \(KafkaLibrary.version)",
            "hiredis \(RedisLibrary.version) \(RedisLibrary.hasTLS ? "with" : "without") TLS",
            "simdjson \(JSON.libraryVersion)", "libcrypto \(DigestsLibrary.version)",
        ]
        return .ok("libraries", versions.joined(separator: ", "))
    }

    /// The finding on video support.
    var videos: DoctorReport {
        let program = VideoOptions.program
        return findExecutable(program).map { .ok("videos", "frames are extracted by \($0)") }
            ?? .warning(
                "videos", "\(program) not found; jobs with video sources fail with provider_error",
                mend: "install it (Debian: apt-get install ffmpeg) if jobs use videos")
    }

    /// Starts a detector and returns the finding.
    func detector(_ options: DetectorOptions) async -> DoctorReport {
        guard let program = options.command.first else {
            return .ok("detector", "none, so gravity has its fallback, and faces cannot be hidden")
        }
        let pool = DetectorPool(options) { _ in }
        do {
            let kinds = try await blocking { try pool.probe() }.map(\.rawValue).sorted()
            return .ok("detector", "\(options.name) finds \(kinds.joined(separator: ", ")), started as \(program)")
        } catch {
            return .broken(
                "detector", "\(error)", mend: "correct images.detector, or remove it if no job uses it")
        }
    }

    /// The findings on open files and memory that the settings require.
    var limits: [DoctorReport] { [openFiles, memory] }

    private var openFiles: DoctorReport {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        // Up to two connections per fetch during redirects, plus some for Kafka, Redis and the libraries.
        let needed = fetches * 2 + 128
        let message = "\(limit.rlim_cur) open files allowed, about \(needed) needed"
        return limit.rlim_cur >= needed
            ? .ok("limits", message)
            : .broken("limits", message, mend: "raise it (ulimit -n 65536, LimitNOFILE=), or lower worker.fetches")
    }

    private var memory: DoctorReport {
        let memory = ResourceLimits.memory
        let message =
            "\(counted(concurrency, "image")) at once, in \(byteText(memoryLimit)) of \(byteText(memory)) of memory"
        // The rest is for the process itself, for codecs that exceed the estimate, and for memory that malloc retains.
        return memoryLimit <= memory / 4 * 3
            ? .ok("limits", message)
            : .warning("limits", message, mend: "lower worker.memoryLimit to at most three quarters of the memory")
    }
}
