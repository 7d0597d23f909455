import Curl
import Digests
import Glibc
import HalcyonImaging
import HalcyonSources
import JSON
import Kafka
import Processes
import Redis
import Vips

/// Looks at what is here: libraries and limits.
struct MachineExamination {
    let images: ImageLimits
    let fetches: Int
    let concurrency: Int

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
        let worst = concurrency * images.decodedBytes
        let message =
            "\(byteText(worst)) for \(counted(concurrency, "image")) at once in the worst case, "
            + "\(byteText(memory)) of memory"
        return worst <= memory
            ? .ok("limits", message)
            : .warning("limits", message, mend: "lower images.maximumDecodedBytes or worker.concurrency")
    }
}
