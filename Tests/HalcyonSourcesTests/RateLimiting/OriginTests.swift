import HalcyonModel
import HalcyonSources
import Testing

@Suite struct OriginTests {
    @Test(arguments: [
        ("http://example.org/a/b?c", "http://example.org"), ("HTTPS://Example.ORG", "https://example.org"),
        ("https://example.org:443/", "https://example.org"), ("https://example.org:8443/a", "https://example.org:8443"),
        ("http://[2001:DB8::1]:80/x", "http://[2001:db8::1]"),
        ("https://user:word@example.org/a@b", "https://example.org"),
        ("http://127.0.0.1:9000/1.jpg", "http://127.0.0.1:9000"), ("http://example.org?a=/b", "http://example.org"),
    ])
    func isSchemeHostAndPort(_ url: String, _ origin: String) throws {
        #expect(Origin(try WebURL(url)).description == origin)
    }
}
