import Kafka
import Telemetry
import Vips

extension Metrics {
    /// Those of a program that serves: of its process and its build, and what others add.
    static func ofProgram() -> Metrics {
        let metrics = Metrics()
        metrics.readProcess()
        metrics.gauge(
            "halcyon_build_info", help: "1; the labels are the versions of Halcyon and of the libraries it runs with.",
            labels: ["version": Version.number, "libvips": VipsLibrary.version, "librdkafka": KafkaLibrary.version]
        ).set(1)
        return metrics
    }

    /// What libvips holds. Children that render are processes of their own, and not in it.
    func readVips() {
        reading(.gauge, "halcyon_vips_tracked_bytes", help: "Bytes of pixels that libvips holds now.") {
            Double(VipsLibrary.liveBytes)
        }
        reading(
            .gauge, "halcyon_vips_tracked_highwater_bytes",
            help: "The most bytes of pixels that libvips ever held at once."
        ) { Double(VipsLibrary.highestBytes) }
        reading(.gauge, "halcyon_vips_tracked_allocations", help: "Buffers of pixels that libvips holds now.") {
            Double(VipsLibrary.liveBuffers)
        }
        reading(.gauge, "halcyon_vips_open_files", help: "Files that libvips has open.") {
            Double(VipsLibrary.openFiles)
        }
        reading(
            .gauge, "halcyon_vips_cached_operations",
            help: "Operations in the cache of libvips, which is off: jobs do not repeat."
        ) { Double(VipsLibrary.cachedOperations) }
    }
}
