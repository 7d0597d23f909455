import HalcyonModel
import Vips

extension EncodedImage {
    /// Step 1, identify: what the bytes are, by their content alone.
    ///
    /// - Throws: `unsupportedFormat` for bytes of no allowed format, with a word about what they are instead.
    init(identifying bytes: [UInt8]) throws(Failure) {
        do throws(VipsError) {
            try self.init(bytes)
        } catch {
            throw Failure(.unsupportedFormat, Self.impression(of: bytes))
        }
    }

    /// A word about bytes that are no image.
    private static func impression(of bytes: [UInt8]) -> String {
        guard !bytes.isEmpty else { return "the source is empty" }
        let start = String(decoding: bytes.prefix(256), as: UTF8.self).lowercased()
        let kinds = [
            ("<!doctype html", "HTML"), ("<html", "HTML"), ("<svg", "SVG"), ("%pdf", "PDF"), ("<?xml", "XML"),
            ("{", "JSON"),
        ]
        let text = start.drop { $0.isWhitespace || $0 == "\u{feff}" }
        let kind = kinds.first { text.hasPrefix($0.0) }.map { "\($0.1), which is" } ?? "of"
        return "the bytes are \(kind) no image format that is served"
    }
}
