import Concurrency
import HalcyonImaging
import HalcyonModel

// libvips holds its thread: tests leave the cooperative pool for it, as the worker does.

private let threads = Renderer.makePool(threads: 2)

/// Runs `body` on a thread for rendering.
func offThePool<Result>(_ body: @escaping @Sendable () throws -> sending Result) async throws -> Result {
    try await threads.run(body)
}

/// Renders on a thread for rendering.
func render(
    _ source: [UInt8], _ variant: Variant, limits: ImageLimits = ImageLimits()
) async throws -> RenderedImage {
    try await render(source, [variant], limits: limits).images[0]
}

/// Renders several outputs on a thread for rendering.
func render(
    _ source: [UInt8], _ variants: [Variant], limits: ImageLimits = ImageLimits()
) async throws -> RenderResult {
    try await offThePool { try Renderer(limits: limits).render(source, variants) }
}

/// Renders, and decodes the output again.
func renderedPixels(_ source: [UInt8], _ variant: Variant) async throws -> Pixels {
    let image = try await render(source, variant)
    return try await offThePool { try Pixels(image.body) }
}
