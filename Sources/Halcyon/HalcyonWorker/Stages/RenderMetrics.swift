import HalcyonRendering
import Telemetry

extension RenderService {
    /// Tells what memory its renderings were given, and how many wait for theirs.
    func measure(_ metrics: Metrics) {
        metrics.reading(
            .gauge, "halcyon_render_memory_bytes",
            help: "Memory that renderings under way were given, as estimated before they began."
        ) { Double(memoryUse.taken) }
        metrics.reading(
            .gauge, "halcyon_render_memory_waiting", help: "Renderings that wait until there is memory for them."
        ) { Double(memoryUse.waiting) }
    }
}
