import CVips
import Threads

/// Stops a running pipeline from another thread. One for each job.
public final class Cancellation: Sendable {
    private struct State {
        var cancelled = false
        /// The address of the image whose pixels are being computed. It is set and cleared by the job, which holds the
        /// image all that time, so under the lock it is always alive.
        var running: UInt?
    }

    private let state = Lock(State())

    /// A token that has not been used.
    public init() {}

    /// Whether ``cancel()`` was called.
    public var isCancelled: Bool { state.withLock { $0.cancelled } }

    /// Stops what runs, and what would run later with this token. libvips looks between strips of pixels, so it takes a
    /// few milliseconds; a codec that takes the picture whole finishes first. ``Format/stopsWhileLoading``,
    /// ``Image/isDecodedAtOnce`` and ``Format/stopsWhileSaving`` say which do.
    public func cancel() {
        state.withLock { state in
            state.cancelled = true
            guard let address = state.running else { return }
            vips_image_set_kill(UnsafeMutablePointer(bitPattern: address), 1)
        }
    }

    /// False when cancelled already: the work is not to begin.
    func begin(_ image: Image) -> Bool {
        let address = UInt(bitPattern: image.handle)
        return state.withLock { state in
            guard !state.cancelled else { return false }
            state.running = address
            return true
        }
    }

    /// The work is over. True when it was cancelled meanwhile, so that its failure is nobody's fault.
    func end() -> Bool {
        state.withLock { state in
            state.running = nil
            return state.cancelled
        }
    }
}

extension Image {
    /// Whether the pixels of this picture, as it was opened, come all at once, so that a ``Cancellation`` waits for the
    /// decoder: progressive JPEG, interlaced PNG, and every format but JPEG, PNG and TIFF. False for what no file was
    /// opened for.
    ///
    /// Measured with libvips 8.14.1 as CPU milliseconds, cancelled after three tenths of decoding 40 megapixels and
    /// shrinking them to a tenth (from then to the return / the whole when nobody cancels): JPEG 2 / 287, progressive
    /// 288 / 559; PNG 26 / 970, interlaced 877 / 1289; TIFF in tiles 191 / 831; WebP 492 / 1243, of ten frames
    /// 735 / 1167; GIF 342 / 740, of ten frames 17 / 799; AVIF 586 / 1053; HEIC 2288 / 2830; JPEG XL 1026 / 1959; PDF
    /// 1169 / 2015; SVG with a filter over 3 megapixels 782 / 1155, with 200 circles over 40 megapixels 2712 / 20920.
    public var isDecodedAtOnce: Bool {
        guard
            let loader = text(of: "vips-loader"),
            let format = Format.allCases.first(where: { loader.hasPrefix("\($0.rawValue)load") })
        else { return false }
        return switch format {
        case .jpeg, .png, .tiff: text(of: "interlaced") == "1"
        case .webp, .gif, .heif, .jxl, .svg, .pdf: true
        }
    }
}
