import HalcyonModel
import Testing

@Suite struct NameTemplateTests {
    private func template(_ text: String) throws(JobError) -> NameTemplate {
        try NameTemplate(text, placeholders: ["variant", "format"])
    }

    @Test(arguments: [
        ("{variant}.{format}", "small.webp"), ("items/7/{variant}", "items/7/small"), ("plain", "plain"), ("", ""),
        ("{format}{format}é", "webpwebpé"), ("a%7B{variant}%7D", "a%7Bsmall%7D"),
    ])
    func replacesPlaceholders(text: String, expanded: String) throws {
        let values = ["variant": "small", "format": "webp"]
        #expect(try template(text).expanded { values[$0]! } == expanded)
    }

    @Test func listsPlaceholders() throws {
        #expect(try template("{variant}/{variant}.{format}").placeholders == ["variant", "format"])
        #expect(try template("plain").placeholders.isEmpty)
    }

    @Test(arguments: [
        ("a/b", "a%2Fb"), ("../x", "..%2Fx"), ("a?b#c", "a%3Fb%23c"), ("\0\n", "%00%0A"), ("é", "%C3%A9"),
        ("{format}", "%7Bformat%7D"), ("a b", "a%20b"), ("%2e", "%252e"), (".a", ".a"), ("\\", "%5C"),
        ("A-z.0_~", "A-z.0_~"),
    ])
    func valuesStayWithinTheirSegment(value: String, encoded: String) throws {
        #expect(try template("x/{variant}/y").expanded { _ in value } == "x/\(encoded)/y")
    }

    @Test(arguments: ["", ".", "..", "..."]) func rejectsValuesThatAreNoName(value: String) throws {
        let template = try template("x/{variant}/y")
        let error = #expect(throws: JobError.self) { try template.expanded { _ in value } }
        #expect(error?.code == .invalidJob)
        #expect(error?.message == "the value of {variant} is \"\(value)\"; expected a name")
    }

    @Test(arguments: [
        ("{varient}", "unknown placeholder {varient}; expected one of {variant}, {format}"),
        ("{Variant}", "unknown placeholder {Variant}; expected one of {variant}, {format}"),
        ("{}", "unknown placeholder; expected one of {variant}, {format}"),
        ("{s3cr3t=1&}", "unknown placeholder; expected one of {variant}, {format}"),
        ("{variant", "a { without a }; expected a placeholder: {variant}, {format}"),
        ("a{", "a { without a }; expected a placeholder: {variant}, {format}"),
        ("{{variant}}", "a { without a }; expected a placeholder: {variant}, {format}"),
        ("{variant}}", "a } without a {; expected a placeholder: {variant}, {format}"),
        ("}{", "a } without a {; expected a placeholder: {variant}, {format}"),
    ])
    func rejectsInvalidTemplates(text: String, message: String) {
        let error = #expect(throws: JobError.self) { try template(text) }
        #expect(error?.code == .invalidJob && error?.message == message)
    }
}
