import HalcyonModel
import Testing

@Suite struct WebURLTests {
    @Test(arguments: [
        ("https://example.org/cat.jpg", "https://example.org/cat.jpg"),
        ("HTTP://Example.ORG:80", "http://example.org/"),
        ("https://example.org:443/a#part", "https://example.org/a"),
        ("https://example.org:8443/A?q=B#c", "https://example.org:8443/A?q=B"),
        ("http://example.org?x=1", "http://example.org/?x=1"),
        ("http://User:Pass@Host/", "http://User:Pass@host/"),
        ("http://[2001:DB8::1]:80/x", "http://[2001:db8::1]/x"),
        ("http://[::1]:8080", "http://[::1]:8080/"),
        ("http://h:0080/", "http://h/"),
        ("http://h:/", "http://h/"),
        ("http://h:0/", "http://h:0/"),
        ("http://example.org/a%20b/%7Euser", "http://example.org/a%20b/%7Euser"),
    ])
    func canonicalizesURLs(text: String, canonical: String) throws {
        let url = try WebURL(text)
        #expect(url.canonical == canonical)
        #expect(url.text == text)
        #expect(try WebURL(url.canonical).canonical == url.canonical)
    }

    @Test(arguments: [
        "", "cat.jpg", "/cat.jpg", "http:", "http:/x", "http://", "http:///x", "http://:80/", "http://h:99999/",
        "http://h:x/",
        "http://exa mple.org/", "http://h/a\nb", "http://[::1]x/", "1http://h/", "://h/", "http://h\\x/",
        "http://a@b@h/", "http://h:1:2/", "http://[]/", "http://[::g]/", "http://[::1/", "http://%6c%6fcalhost/",
        "http://ｅxample.org/", "http://exa$mple.org/",
    ])
    func rejectsInvalidURLs(text: String) {
        #expect { try WebURL(text) } throws: { ($0 as? JobError)?.code == .invalidJob }
    }

    @Test(arguments: ["ftp://h/x", "file:///etc/passwd", "javascript:alert(1)", "gopher://h/", "s3://bucket/key"])
    func rejectsUnsupportedSchemes(text: String) {
        #expect { try WebURL(text) } throws: { ($0 as? JobError)?.code == .unsupportedSource }
    }

    @Test(arguments: ["/\u{301}@other.org/", "/\u{20d2}@other.org", "#\u{301}@other.org/", "?\u{301}@other.org/"])
    func combiningMarksDoNotExtendTheHost(tail: String) throws {
        #expect(try WebURL("http://example.org" + tail).host == "example.org")
    }

    @Test func comparesURLsByBytes() throws {
        let composed = try WebURL("http://h/\u{e9}")
        let decomposed = try WebURL("http://h/e\u{301}")
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed]).count == 2)
        #expect(try composed == WebURL("http://h/\u{e9}"))
    }

    @Test func limitsLength() {
        #expect(throws: JobError.self) { try WebURL("http://h/" + String(repeating: "a", count: WebURL.longest)) }
    }
}
