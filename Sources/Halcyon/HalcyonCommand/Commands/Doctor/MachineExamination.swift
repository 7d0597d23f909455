import Curl
import Digests
import Glibc
import HalcyonSources
import JSON
import Kafka
import Processes
import Redis
import Vips

/// Looks at what is here: libraries and limits.
struct MachineExamination {
    let fetches: Int
    let concurrency: Int
    let memoryLimit: Int

    /// What libraries there are.
    var libraries: Diagnosis {
        let versions = [
            "libvips \(VipsLibrary.version)", "libcurl \(CurlLibrary.version)", "librdkafka \(KafkaLibrary.version)",
            "hiredis \(RedisLibrary.version) \(RedisLibrary.hasTLS ? "with" : "without") TLS",
            "simdjson \(JSON.libraryVersion)", "libcrypto \(DigestsLibrary.version)",
        ]
        return .ok("libraries", versions.joined(separator: ", "))
    }

    /// Whether frames of videos can be found.
    var videos: Diagnosis {
        let program = VideoOptions.program
        return findExecutable(program).map { .ok("videos", "frames by \($0)") }
            ?? .warning(
                "videos", "no \(program): frames of videos end as provider_error",
                mend: "install it, such as Debian's package ffmpeg, if jobs have videos")
    }

    /// Whether the machine has what the settings ask of it.
    var limits: [Diagnosis] { [openFiles, memory] }

    private var openFiles: Diagnosis {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        // Two connections a fetch while redirects are followed, and some for Kafka, Redis and the libraries.
        let needed = fetches * 2 + 128
        let message = "\(limit.rlim_cur) open files allowed, about \(needed) needed"
        return limit.rlim_cur >= needed
            ? .ok("limits", message)
            : .broken("limits", message, mend: "raise it (ulimit -n 65536, LimitNOFILE=), or lower worker.fetches")
    }

    private var memory: Diagnosis {
        let memory = MachineShare.memory
        let message =
            "\(counted(concurrency, "image")) at once, in \(byteText(memoryLimit)) of \(byteText(memory)) of memory"
        // The rest is for the process itself, for codecs beyond what is estimated, and for what malloc does not give back.
        return memoryLimit <= memory / 4 * 3
            ? .ok("limits", message)
            : .warning("limits", message, mend: "lower worker.memoryLimit to three quarters of it, or less")
    }
}
