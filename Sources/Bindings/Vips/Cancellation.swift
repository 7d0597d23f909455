import CVips
import Concurrency

/// A token that stops a running pipeline from another thread. Use one token for each job.
public final class Cancellation: Sendable {
    private struct State {
        var cancelled = false
        /// The address of the image whose pixels are being computed. The job sets and clears it, and retains the image
        /// in between, so the image is always valid under the lock.
        var running: UInt?
    }

    private let state = Lock(State())

    /// Creates a token that is not cancelled.
    public init() {}

    /// True if ``cancel()`` was called.
    public var isCancelled: Bool { state.withLock { $0.cancelled } }

    /// Stops the running pipeline and prevents later ones with this token. libvips checks for cancellation between
    /// strips of pixels, so stopping takes a few milliseconds. A codec that processes the whole picture at once
    /// finishes first; see ``Format/stopsWhileLoading``, ``Image/isDecodedAtOnce`` and ``Format/stopsWhileSaving``.
    public func cancel() {
        state.withLock { state in
            state.cancelled = true
            guard let address = state.running else { return }
            vips_image_set_kill(UnsafeMutablePointer(bitPattern: address), 1)
        }
    }

    /// Registers the image to be computed. Returns false if the token is already cancelled, in which case the work must
    /// not begin.
    func begin(_ image: Image) -> Bool {
        let address = UInt(bitPattern: image.handle)
        return state.withLock { state in
            guard !state.cancelled else { return false }
            state.running = address
            return true
        }
    }

    /// Unregisters the image. Returns true if the token was cancelled in the meantime, in which case a failure of the
    /// work is expected.
    func end() -> Bool {
        state.withLock { state in
            state.running = nil
            return state.cancelled
        }
    }
}

extension Image {
    /// True if the decoder of this picture, as it was opened, produces all pixels at once, so that a ``Cancellation``
    /// has to wait for it. This holds for progressive JPEG, interlaced PNG, and all formats except JPEG, PNG and TIFF.
    /// False for a picture that was not opened from a file.
    ///
    /// Measured with libvips 8.14.1 in CPU milliseconds, for decoding 40 megapixels, shrinking them to a tenth, and
    /// cancelling after three tenths of the time (from cancellation to return / without cancellation): JPEG 2 / 287,
    /// progressive 288 / 559; PNG 26 / 970, interlaced 877 / 1289; TIFF in tiles 191 / 831; WebP 492 / 1243, with ten
    /// frames 735 / 1167; GIF 342 / 740, with ten frames 17 / 799; AVIF 586 / 1053; HEIC 2288 / 2830; JPEG XL 1026 /
    /// 1959; PDF 1169 / 2015; SVG with a filter over 3 megapixels 782 / 1155, with 200 circles over 40 megapixels 2712
    /// / 20920.
    public var isDecodedAtOnce: Bool {
        guard
            let loader = text(of: "vips-loader"),
            let format = Format.allCases.first(where: { $0.operation.map(loader.hasPrefix) ?? false })
        else { return false }
        return switch format {
        case .jpeg, .png, .tiff: text(of: "interlaced") == "1"
        case .webp, .gif, .heif, .jxl, .svg, .pdf, .jp2: true
        case .bmp, .ico: false
        }
    }
}
