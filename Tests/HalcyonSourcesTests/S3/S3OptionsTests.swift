import HalcyonModel
import Testing

@testable import HalcyonSources

/// URLs of objects.
@Suite struct S3OptionsTests {
    @Test(arguments: [
        (nil, S3Options.Style.auto, "s3://bucket/a b/c", "https://bucket.s3.eu-test-1.amazonaws.com/a%20b/c"),
        (nil, .auto, "s3://my.bucket/a", "https://s3.eu-test-1.amazonaws.com/my.bucket/a"),
        (nil, .path, "s3://bucket/a", "https://s3.eu-test-1.amazonaws.com/bucket/a"),
        ("http://127.0.0.1:9000", .auto, "s3://bucket/a?versionId=1", "http://127.0.0.1:9000/bucket/a?versionId=1"),
        ("https://Store.example/base", .path, "s3://bucket//a/", "https://store.example/base/bucket//a/"),
        ("https://store.example:8443/", .virtual, "s3://my.bucket/+", "https://my.bucket.store.example:8443/%2B"),
    ])
    func buildsObjectURLsForEachStyle(
        endpoint: String?, style: S3Options.Style, object: String, url: String
    ) throws {
        var options = S3Options()
        options.endpoint = try endpoint.map { try WebURL($0) }
        options.region = "eu-test-1"
        options.style = style
        #expect(try options.url(of: S3Source(object.replacing(" ", with: "%20"))).text == url)
    }
}
