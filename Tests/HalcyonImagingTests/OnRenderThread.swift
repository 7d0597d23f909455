import Concurrency
import HalcyonImaging
import HalcyonModel

// libvips blocks its thread, so tests call it outside of the cooperative pool, as the worker does.

private let threads = Renderer.makePool(threads: 2)

/// Runs `body` on a render thread.
func onRenderThread<Result>(_ body: @escaping @Sendable () throws -> sending Result) async throws -> Result {
    try await threads.run(body)
}

/// Renders one output on a render thread.
func render(
    _ source: [UInt8], _ variant: Variant, limits: ImageLimits = ImageLimits()
) async throws -> RenderedImage {
    try await render(source, [variant], limits: limits).images[0]
}

/// Renders several outputs on a render thread.
func render(
    _ source: [UInt8], _ variants: [Variant], limits: ImageLimits = ImageLimits()
) async throws -> RenderResult {
    try await onRenderThread { try Renderer(limits: limits).render(source, variants) }
}

/// Renders, and decodes the output.
func renderedPixels(_ source: [UInt8], _ variant: Variant) async throws -> Pixels {
    let image = try await render(source, variant)
    return try await onRenderThread { try Pixels(image.body) }
}
