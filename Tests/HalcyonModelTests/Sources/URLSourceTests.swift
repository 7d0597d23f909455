import HalcyonModel
import Testing

/// `file:` and `s3:` URLs.
@Suite struct URLSourceTests {
    @Test(arguments: [
        ("file:///a/b.jpg", "/a/b.jpg"), ("FILE:/a", "/a"), ("file://localhost/a", "/a"), ("file:////a//./b", "/a/b"),
        ("file:///a%20b%25%C3%A9\u{e9}", "/a b%\u{e9}\u{e9}"), ("file:///.../..a/a..", "/.../..a/a.."),
        ("file:///%61%2E%2e%2e", "/a..."), ("file:///a/%2E/b", "/a/b"),
    ])
    func readsPathsOfFileURLs(text: String, path: String) throws {
        let file = try FileSource(text)
        #expect(file.path == path)
        #expect(file.text == text)
        #expect(try Source(text) == .file(file))
    }

    @Test(arguments: [
        "file:", "file:a", "file://h/a", "file:///", "file:///a/", "file:///a/.", "file:///a/../b", "file:///..",
        "file:///%2e%2e/a", "file:///.%2E/a", "file:///%2E./a", "file:///a%2fb", "file:///a%2F..%2Fb", "file:///a%00",
        "file:///a%0A", "file:///a%", "file:///a%2", "file:///%C3%28", "file:///a?b", "file:///a#b", "file:///a\\..\\b",
        "file:///a b", "file:///a\u{0}",
    ])
    func rejectsInvalidFileURLs(text: String) {
        #expect(throws: JobError.self) { try FileSource(text) }
    }

    @Test(arguments: ["/a/b", "/my cat%\u{e9}?#.jpg", "/a\\b:c"])
    func roundTripsPaths(path: String) throws {
        #expect(try FileSource(path: path).path == path)
    }

    @Test func comparesFilesByBytes() throws {
        let (composed, decomposed) = (try Source("file:///\u{e9}"), try Source("file:///e\u{301}"))
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed]).count == 2)
    }

    @Test(arguments: [
        ("s3://bucket/key", "bucket", "key", nil), ("S3://my.bucket-1/a/b", "my.bucket-1", "a/b", nil),
        ("s3://bucket//a/", "bucket", "/a/", nil), ("s3://bucket/a%2Fb+c%20d", "bucket", "a/b+c d", nil),
        ("s3://bucket/a%3Fb?versionId=x-1_.~", "bucket", "a?b", "x-1_.~"),
    ])
    func readsBucketKeyAndVersion(text: String, bucket: String, key: String, version: String?) throws {
        let object = try S3Source(text)
        #expect(object.bucket == bucket && object.key == key && object.version == version)
        #expect(try Source(text) == .s3(object))
    }

    @Test(arguments: [
        "s3:", "s3:bucket/key", "s3://bucket", "s3://bucket/", "s3://ab/c", "s3://BUCKET/c", "s3://b_c/c",
        "s3://b..c/d",
        "s3://.bc/d", "s3://bc./d", "s3://-bc/d", "s3://1.2.3.4/c", "s3://bucket/a#b", "s3://bucket/a?b=c",
        "s3://bucket/a?versionId=", "s3://bucket/a?versionId=b&c=d", "s3://bucket/../a", "s3://bucket/a/%2e",
        "s3://bucket/a%2F..%2Fb", "s3://bucket/%00", "s3://bucket/%zz", "s3://bucket/%ff", "s3://user:pw@bucket/a",
        "s3://bucket/" + String(repeating: "a", count: 1025), "s3://" + String(repeating: "a", count: 64) + "/b",
    ])
    func rejectsInvalidS3URLs(text: String) {
        #expect(throws: JobError.self) { try S3Source(text) }
    }

    @Test(arguments: [
        ("s3://pictures/", "pictures", ""), ("s3://pictures/2026/", "pictures", "2026/"),
        ("s3://a.b-c/a%20b/%C3%BC", "a.b-c", "a b/ü"), ("s3://pictures/../", "pictures", "../"),
    ])
    func parsesPrefixes(text: String, bucket: String, prefix: String) throws {
        let parsed = try S3Prefix(text)
        #expect(parsed.bucket == bucket && parsed.prefix == prefix && parsed.text == text)
        #expect(parsed.source(of: "a b/ü?") == "s3://\(bucket)/a%20b/%C3%BC%3F")
    }

    @Test(arguments: [
        "", "s3:", "s3://", "s3://pictures", "s3:///a", "https://pictures/a", "s3://Pictures/", "s3://pictures/%zz",
        "s3://pictures/a?versionId=1", "s3://pictures/#", "s3://pictures/%00", "s3://pictures/%FF",
        "s3://pictures/" + String(repeating: "a", count: 1025),
    ])
    func malformedPrefixesAreRejected(text: String) {
        #expect(throws: JobError.self) { try S3Prefix(text) }
    }

    @Test func equivalentS3URLsShareACacheKey() throws {
        let texts = ["s3://bucket/a%20b/%7Ec", "S3://bucket/a%20b%2F~c", "s3://bucket/a%20b/%7e%63"]
        #expect(Set(try texts.map { try Source($0).cacheKey }) == ["s3:bucket/a%20b/~c"])
    }
}
