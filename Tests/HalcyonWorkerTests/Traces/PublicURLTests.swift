import Testing

@testable import HalcyonWorker

/// URLs as shown in spans.
struct PublicURLTests {
    @Test(arguments: [
        ("https://example.org/cat.jpg", "https://example.org/cat.jpg", 443),
        ("http://example.org:8080/", "http://example.org:8080/", 8080),
        ("http://user:pass@example.org/a@b", "http://example.org/a@b", 80),
        ("https://user@[::1]:9000/a?b=c", "https://[::1]:9000/a?b=REDACTED", 9000),
        ("https://[2001:db8::80]/a", "https://[2001:db8::80]/a", 443),
        (
            "https://a.example/p?X-Amz-Signature=s3cr3t&w=5&flag&=v&",
            "https://a.example/p?X-Amz-Signature=REDACTED&w=REDACTED&REDACTED&=REDACTED&", 443
        ),
        ("https://a.example/?a=b=c?d", "https://a.example/?a=REDACTED", 443),
        ("https://a.example/?", "https://a.example/?", 443),
    ])
    func redactsCredentialsAndQueryValues(canonical: String, text: String, port: Int) {
        let url = PublicURL(canonical)
        #expect(url.text == text && url.port == port)
    }
}
