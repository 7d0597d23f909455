import HalcyonModel
import Testing

@Suite struct CredentialsTests {
    @Test(arguments: [
        ("https://e.org/a", "https://e.org/a"), ("https://user:pass@e.org/a?b#c", "https://****@e.org/a?b#c"),
        ("HTTP://token@e.org", "HTTP://****@e.org"), ("https://u:p%40q@[::1]:8080/@x", "https://****@[::1]:8080/@x"),
        ("https://e.org/@user/a.jpg", "https://e.org/@user/a.jpg"),
        ("https://e.org?mail=a@b.org", "https://e.org?mail=a@b.org"),
        ("https://e.org:8080/@user", "https://e.org:8080/@user"), ("https://[::1]:80/@user", "https://[::1]:80/@user"),
        ("https://@e.org/", "https://@e.org/"), ("initials:a@b", "initials:a@b"), ("a@b", "a@b"), ("", ""),
        // Malformed and unsupported URLs.
        ("https://u:p@q@e.org/", "https://****@e.org/"), ("ftp://u:p@e.org/a", "ftp://****@e.org/a"),
        ("https://u:p/q@e.org/a", "https://****@e.org/a"), ("https://u:p?q#r@e.org/a", "https://****@e.org/a"),
    ])
    func areRedactedInURLs(text: String, shown: String) {
        #expect(text.withoutCredentials == shown)
        if let source = try? Source(text) { #expect(source.shownText == shown) }
    }

    /// A slash, a question mark or a number sign ends the authority. The text before it looks like a host and a port.
    @Test(arguments: [
        "https://bob:s3cr/et@e.org/a", "https://bob:s3cr?et@e.org/a", "https://bob:1:s3cr#et@e.org/a",
        "https://bob+s3cr/et@e.org/a", "https://[bob:s3cr]/et@e.org/a", "https://[::1]s3cr/et@e.org/a",
        "https://bob:65536:s3cr@e.org:s3cr/a", "s3://bob:s3cr@bucket/a",
    ])
    func areNotQuotedInErrors(text: String) {
        do throws(JobError) {
            _ = try Source(text)
            Issue.record("the URL is valid")
        } catch {
            #expect(error.code == .invalidJob && !error.message.contains("s3cr"))
        }
    }

    @Test func arePercentDecoded() throws {
        let found = try #require(try WebURL("https://u%3a:p%40%2F:q@e.org/").userAndPassword)
        #expect(found.user == Array("u:".utf8) && found.password == Array("p@/:q".utf8))
        #expect(try #require(try WebURL("https://u@e.org/").userAndPassword).password.isEmpty)
        #expect(try WebURL("https://e.org/").userAndPassword == nil)
        #expect(try WebURL("https://u%4@e.org/").userAndPassword == nil)
    }
}
