import Curl
import Digests
import Glibc
import HalcyonImaging
import HalcyonModel
import JSON
import Kafka
import Redis
import Threads
import Vips

/// Looks at what is installed here: libraries, formats, limits.
struct MachineExamination {
    let images: ImageLimits
    let fetches: Int
    let concurrency: Int

    func findings() async -> [Finding] {
        await libraries + blocking(reading) + writing() + [openFiles, memory]
    }

    private var libraries: [Finding] {
        let versions = [
            "libvips \(VipsLibrary.version)", "libcurl \(CurlLibrary.version)", "librdkafka \(KafkaLibrary.version)",
            "hiredis \(RedisLibrary.version) \(RedisLibrary.hasTLS ? "with" : "without") TLS",
            "simdjson \(JSON.libraryVersion)", "libcrypto \(DigestsLibrary.version)",
        ]
        return [.ok("libraries", versions.joined(separator: ", "))]
    }

    // MARK: Formats

    @Sendable private func reading() -> [Finding] {
        let formats = Format.allCases
        let missing = formats.filter { !$0.canLoad }.map { format in
            Finding.warning(
                "reading", "libvips was built without \(format.rawValue)",
                mend: "install a libvips that has it; sources of this kind will fail")
        }
        let readable = formats.filter(\.canLoad).map(\.rawValue).joined(separator: ", ")
        return [.ok("reading", readable)] + missing
    }

    /// Writes a small picture in each format and reads it back: that an encoder is named does not say that it is
    /// installed.
    private func writing() async -> [Finding] {
        let pool = Renderer.makePool(threads: 1)
        var (works, findings): ([String], [Finding]) = ([], [])
        for format in ImageFormat.writable {
            do {
                let renderer = Renderer(limits: images)
                let card = try await pool.run {
                    try Image(pixels: [UInt8](repeating: 127, count: 64 * 64 * 3), width: 64, height: 64, bands: 3)
                        .encoded(as: .png)
                }
                let sizing = Sizing(goal: .sizer(.natural))
                let written = try await renderer.render(
                    card, Variant(sizing: sizing, output: OutputOptions(format: format)), on: pool)
                _ = try await renderer.render(
                    written.body, Variant(sizing: sizing, output: OutputOptions(format: .png)), on: pool)
                works.append(format.rawValue)
            } catch {
                findings.append(
                    .broken(
                        "writing", "\(format.rawValue): \(error)",
                        mend: "install the encoder that libvips lacks (for AVIF a libheif with an AV1 encoder)"))
            }
        }
        await blocking { pool.shutdown() }
        return [.ok("writing", works.joined(separator: ", "))] + findings
    }

    // MARK: Limits

    private var openFiles: Finding {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        // Two connections a fetch while redirects are followed, and some for Kafka, Redis and the libraries.
        let needed = fetches * 2 + 128
        let message = "\(limit.rlim_cur) open files allowed, about \(needed) needed"
        return limit.rlim_cur >= needed
            ? .ok("limits", message)
            : .broken("limits", message, mend: "raise it (ulimit -n 65536, LimitNOFILE=), or lower worker.fetches")
    }

    private var memory: Finding {
        let physical = sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE))
        let worst = concurrency * images.decodedBytes
        let message =
            "\(byteText(worst)) for \(counted(concurrency, "image")) at once in the worst case, "
            + "\(byteText(physical)) of memory"
        return worst <= physical
            ? .ok("limits", message)
            : .warning("limits", message, mend: "lower images.maximumDecodedBytes or worker.concurrency")
    }
}
