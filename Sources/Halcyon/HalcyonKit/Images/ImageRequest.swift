import Foundation

/// An image that an ``ImageLoader`` loads.
public struct ImageRequest: Sendable, Hashable {
    /// The job that makes the image, usually with one output.
    ///
    /// A job whose fields all describe the image is one request to `/v1/render`, which a stored image is the answer of.
    /// Any other job (with headers, alternative sources, several variants and so on) is submitted, awaited, and its
    /// first image loaded.
    public var job: ImageJob
    /// The placeholder that ``ImageLoader/stages(_:)`` delivers first; nil for none.
    public var placeholder: Placeholder?
    /// Smaller versions that ``ImageLoader/stages(_:)`` delivers before the image, the smallest first. Each is an
    /// image of its own, with the source of the job.
    public var previews: [ImageJob.Output] = []
    /// The use of images in memory.
    public var cacheUse = CacheUse.fresh

    /// Creates a request for the image of a job.
    public init(_ job: ImageJob, placeholder: Placeholder? = nil, previews: [ImageJob.Output] = []) {
        (self.job, self.placeholder, self.previews) = (job, placeholder, previews)
    }

    /// Creates a request for an image of this size.
    public init(
        _ source: ImageJob.Source, width: Double? = nil, height: Double? = nil, screenScale: Double? = nil,
        contentMode: ImageJob.ContentMode? = nil, format: ImageJob.Format? = nil, placeholder: Placeholder? = nil
    ) {
        self.init(
            ImageJob(
                source, width: width, height: height, screenScale: screenScale, contentMode: contentMode,
                format: format),
            placeholder: placeholder)
    }

    /// An image that is shown until more has been loaded.
    public enum Placeholder: Sendable, Hashable {
        /// The image of a BlurHash that the app knows, for example from a `ready` event.
        case blurHash(BlurHash)
        /// A bitmap, such as one of a single color.
        case bitmap(Bitmap)
        /// The BlurHash of the image, which a job of its own computes. It is delivered if it is there before the
        /// image, and remembered for the next time.
        case computed

        /// The placeholder that an output of a `ready` event contains: its BlurHash, or else its dominant color; nil if
        /// it has neither.
        public init?(_ variant: ImageEvent.Variant) {
            // An invalid placeholder of a later version is not worth an error.
            if let hash = variant.blurhash.flatMap({ try? BlurHash($0) }) {
                self = .blurHash(hash)
            } else if let color = variant.dominantColor.flatMap({ try? Bitmap(color: $0) }) {
                self = .bitmap(color)
            } else {
                return nil
            }
        }
    }

    /// The use of images in memory.
    public enum CacheUse: Sendable, Hashable, CaseIterable {
        /// An image in memory is used as long as the response allowed, and revalidated after that.
        case fresh
        /// An image in memory is revalidated, even if it is fresh: the gateway answers 304 if it has not changed.
        case revalidate
        /// The image is loaded from the gateway, regardless of memory.
        case reload
    }

    /// The identity of an image: requests with equal keys share one load and one place in memory.
    struct Key: Sendable, Hashable {
        let job: ImageJob
    }

    var key: Key {
        var job = job
        (job.id, job.priority) = (nil, nil)
        return Key(job: job)
    }

    /// The request for a smaller version.
    func preview(_ output: ImageJob.Output) -> ImageRequest {
        var preview = self
        (preview.job.output, preview.job.variants, preview.job.id) = (output, nil, nil)
        // A preview is not uploaded in place of the image.
        preview.job.delivery = nil
        (preview.placeholder, preview.previews) = (nil, [])
        return preview
    }

    /// The size of a placeholder in the proportions of the image, as far as they are known.
    func placeholderSize(side: Int, of hash: BlurHash) -> (width: Int, height: Int) {
        let output = job.output
        var ratio = Double(hash.columns) / Double(hash.rows)
        if let width = output.width, let height = output.height, width > 0, height > 0 { ratio = width / height }
        func shorter(_ part: Double) -> Int { max(1, Int((Double(side) * part).rounded())) }
        return ratio >= 1 ? (side, shorter(1 / ratio)) : (shorter(ratio), side)
    }
}

/// An image that an ``ImageLoader`` has loaded.
public struct LoadedImage: Sendable, Hashable {
    /// The file.
    public let data: Data
    /// The media type of the file, such as `image/webp`.
    public let mediaType: String
    /// The size in pixels; nil if the gateway did not send it.
    public let size: Size?
    /// The place that the image came from.
    public internal(set) var cacheStatus: CacheStatus
    /// The failure of the job, if this is its fallback picture. Such a picture is not kept in memory.
    public let failure: FailureCode?

    /// A size in pixels.
    public struct Size: Sendable, Hashable, CustomStringConvertible {
        /// The number of pixels per side.
        public let width, height: Int

        /// Creates a size.
        public init(width: Int, height: Int) { (self.width, self.height) = (width, height) }

        /// The size as text, such as `400x300`.
        public var description: String { "\(width)x\(height)" }

        /// Parses the header field `Halcyon-Image-Size`, such as `400x300`.
        init?(_ text: String) {
            let sides = text.split(separator: "x", omittingEmptySubsequences: false).map { Int($0) }
            guard sides.count == 2, let width = sides[0], let height = sides[1], width > 0, height > 0 else {
                return nil
            }
            self.init(width: width, height: height)
        }
    }

    /// The place that an image came from.
    public enum CacheStatus: Sendable, Hashable, CaseIterable {
        /// The memory of the loader, without a request.
        case memory
        /// The memory of the loader, after the gateway had confirmed that the image has not changed (304).
        case revalidated
        /// The gateway.
        case network
    }
}

/// A step of the delivery of an image.
public enum ImageStage: Sendable, Hashable {
    /// The placeholder.
    case placeholder(Bitmap)
    /// A smaller version.
    case preview(LoadedImage)
    /// The image. No stage follows.
    case final(LoadedImage)
}
