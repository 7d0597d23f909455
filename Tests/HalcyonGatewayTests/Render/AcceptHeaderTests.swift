import HalcyonModel
import Testing

@testable import HalcyonGateway

/// Parsing of `Accept` (RFC 9110, 12.5.1).
@Suite struct AcceptHeaderTests {
    /// The headers that Chrome, Firefox and Safari send for `<img>`.
    private static let browsers = [
        "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
        "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5",
        "image/webp,image/avif,image/jxl,image/heic,image/heic-sequence,video/*;q=0.8,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5",
    ]

    @Test(arguments: browsers) func recognizesFormatsNamedByBrowsers(_ header: String) {
        let accepts = AcceptHeader(header)
        #expect(accepts.names(.webp) && accepts.names(.avif) && accepts.takesImages && accepts.prefersImages)
    }

    @Test(arguments: ["*/*", "image/*", "image/webp;q=0", "image/webpx", "", "image/webp/x", "text/webp"])
    func doesNotNameUnlistedOrExcludedFormats(_ header: String) { #expect(!AcceptHeader(header).names(.webp)) }

    @Test(arguments: [
        ("image/webp", true), (" IMAGE/WEBP ; q=0.1 ", true), ("text/html , image/webp;q=1.0", true),
        ("image/webp;q=x", false), ("image/webp;q=0.0", false),
    ])
    func respectsWeights(_ header: String, _ isNamed: Bool) { #expect(AcceptHeader(header).names(.webp) == isNamed) }

    @Test(arguments: [
        (String?.none, true, false), ("*/*", true, false), ("application/json", false, false),
        ("application/json, */*;q=0", false, false), ("image/png", true, true), ("image/*;q=0", false, false),
        ("", true, false), ("rubbish", true, false),
    ])
    func detectsAcceptedAndPreferredImages(_ header: String?, _ takes: Bool, _ prefers: Bool) {
        let accepts = AcceptHeader(header)
        #expect(accepts.takesImages == takes && accepts.prefersImages == prefers)
    }
}
