import HalcyonImaging
import HalcyonModel
import HalcyonSources

extension ResultFacts {
    /// What is known of an output and of the source it was made from.
    init(_ image: RenderedImage, of rendering: Rendering, from source: LoadedSource) {
        self.init(
            width: image.size.width, height: image.size.height, format: image.format, bytes: image.body.count,
            sha256: image.sha256, frames: image.frames, blurhash: image.blurhash, dominantColor: image.dominantColor,
            source: SourceFacts(
                status: source.status, etag: source.validators.etag, bytes: source.body.count,
                format: rendering.sourceFormat,
                width: rendering.sourceSize.width, height: rendering.sourceSize.height,
                isTruncated: rendering.sourceIsTruncated),
            isPrivate: source.headers.isPrivate)
    }
}
