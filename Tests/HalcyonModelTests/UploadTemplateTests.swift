import HalcyonModel
import Testing

@Suite struct UploadTemplateTests {
    private let key = ResultKey("halcyon:{8a7770243f9d04f66ec3ca6401b0f34e}:fdbc61c3f7e63ad74f25e95b66f219e9")!

    private func url(_ template: String, label: String = "small", index: Int = 2) throws -> String {
        try UploadTemplate(template).url(
            for: UploadTemplate.Output(
                label: label, index: index, key: key, width: 400, height: 300, format: .webp)
        ).text
    }

    @Test(arguments: [
        ("https://h/items/7/{variant}.{format}", "https://h/items/7/small.webp"),
        ("https://h/{index}-{width}x{height}", "https://h/2-400x300"),
        ("https://h/{key}", "https://h/8a7770243f9d04f66ec3ca6401b0f34e-fdbc61c3f7e63ad74f25e95b66f219e9"),
        ("https://h?file={variant}&a=b", "https://h?file=small&a=b"),
        ("http://[::1]:80/{index}/", "http://[::1]:80/2/"),
        ("https://u:p@h/%7B{variant}%7D//{variant}", "https://u:p@h/%7Bsmall%7D//small"),
    ])
    func expandsPlaceholders(template: String, url: String) throws {
        #expect(try self.url(template) == url)
    }

    /// Names of variants cannot contain such characters, so this is a second line of defense.
    @Test func valuesCannotLeaveTheirSegment() throws {
        #expect(try url("https://h/a/{variant}/b", label: "../../x?y#z\n") == "https://h/a/..%2F..%2Fx%3Fy%23z%0A/b")
        for label in ["..", ".", ""] {
            let error = #expect(throws: JobError.self) { try url("https://h/a/{variant}/b", label: label) }
            #expect(error?.code == .invalidJob)
        }
    }

    @Test func rejectsURLsThatAreTooLong() throws {
        let template = "https://h/{variant}{key}" + String(repeating: "x", count: WebURL.longest - 24)
        #expect(throws: Never.self) { try UploadTemplate(template) }
        let error = #expect(throws: JobError.self) { try url(template) }
        #expect(error?.code == .invalidJob && error?.message.contains("at most 8192 bytes") == true)
    }

    @Test func textWithoutBracesIsAURL() throws {
        #expect(try UploadTargets("https://h/a") == .urls([try WebURL("https://h/a")]))
        #expect(try UploadTargets("https://h/{index}") == .template(try UploadTemplate("https://h/{index}")))
        #expect(try UploadTemplate("https://h/{index}").text == "https://h/{index}")
    }
}
