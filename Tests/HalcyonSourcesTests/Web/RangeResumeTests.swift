import Curl
import Formats
import Testing

@testable import HalcyonSources

/// Resumption of interrupted responses by range requests.
@Suite struct RangeResumeTests {
    private static func response(_ status: Int, _ fields: [(String, String)], _ body: String) -> HTTPResponse {
        var headers = HTTPFields()
        for (name, value) in fields { headers.add(name, value) }
        return HTTPResponse(status: status, headers: headers, body: Array(body.utf8))
    }

    private static let first = response(200, [("ETag", "\"a\"")], "01234")

    @Test(
        arguments: [
            ([("ETag", "\"a\"")], "\"a\""), ([("ETag", "\"a\""), ("Accept-Ranges", "bytes")], "\"a\""),
            (
                [("Last-Modified", "Sun, 06 Nov 1994 08:49:36 GMT"), ("Date", "Sun, 06 Nov 1994 08:49:37 GMT")],
                "Sun, 06 Nov 1994 08:49:36 GMT"
            ),
            ([("ETag", "W/\"a\"")], nil), ([], nil), ([("ETag", "\"a\""), ("Accept-Ranges", "none")], nil),
            ([("ETag", "\"a\""), ("Content-Encoding", "gzip")], nil),
            ([("Last-Modified", "Sun, 06 Nov 1994 08:49:36 GMT")], nil),
            ([("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"), ("Date", "Sun, 06 Nov 1994 08:49:37 GMT")], nil),
            (
                [
                    ("ETag", "W/\"a\""), ("Last-Modified", "Sun, 06 Nov 1994 08:49:36 GMT"),
                    ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ], nil
            ),
        ] as [([(String, String)], String?)])
    func resumesOnlyWithAStrongValidator(_ fields: [(String, String)], _ validator: String?) {
        let resumption = RangeResume(Self.response(200, fields, "01234"))
        #expect(resumption?.fields.map(\.value) == validator.map { ["bytes=5-", $0] })
        #expect(RangeResume(Self.response(404, fields, "01234")) == nil)
    }

    @Test func remainingRangeCompletesTheBody() throws {
        let resumption = try #require(RangeResume(Self.first))
        for range in ["bytes 5-9/10", "bytes 5-9/*", "Bytes 5-9/10"] {
            guard
                case .whole(let whole) = resumption.joined(
                    with: Self.response(206, [("Content-Range", range)], "56789"), isWhole: true, limit: 100)
            else {
                Issue.record("\(range) does not complete the body")
                continue
            }
            #expect(whole.status == 200 && whole.body == Array("0123456789".utf8))
            #expect(whole.headers["ETag"] == "\"a\"")
        }
    }

    @Test func ifMatchResumesOnlyWithAnETag() throws {
        let resumption = try #require(RangeResume(Self.first, .ifMatch))
        #expect(resumption.fields.map(\.name) == ["Range", "If-Match"])
        #expect(resumption.fields.map(\.value) == ["bytes=5-", "\"a\""])
        let dated = [("Last-Modified", "Sun, 06 Nov 1994 08:49:36 GMT"), ("Date", "Sun, 06 Nov 1994 08:49:37 GMT")]
        #expect(RangeResume(Self.response(200, dated, "01234"), .ifMatch) == nil)
        guard case .changed = resumption.joined(with: Self.response(412, [], ""), isWhole: true, limit: 100) else {
            Issue.record("412 does not count as a change of the object")
            return
        }
        // A request with If-Range does not expect that status.
        guard
            case .useless = try #require(RangeResume(Self.first)).joined(
                with: Self.response(412, [], ""), isWhole: true, limit: 100)
        else {
            Issue.record("412 is accepted after If-Range")
            return
        }
    }

    @Test(arguments: RangeResume.Condition.allCases)
    func rejectsRangesOfOtherVersions(_ condition: RangeResume.Condition) throws {
        let resumption = try #require(RangeResume(Self.first, condition))
        for (tag, isTaken) in [("\"a\"", true), ("\"b\"", false), ("W/\"a\"", false)] {
            let fields = [("Content-Range", "bytes 5-9/10"), ("ETag", tag)]
            let outcome = resumption.joined(with: Self.response(206, fields, "56789"), isWhole: true, limit: 100)
            if case .whole = outcome { #expect(isTaken) } else { #expect(!isTaken, "\(tag)") }
        }
    }

    @Test func resumesAgainAfterAnotherInterruption() throws {
        let resumption = try #require(RangeResume(Self.first))
        guard
            case .more(let more) = resumption.joined(
                with: Self.response(206, [("Content-Range", "bytes 5-9/10")], "56"), isWhole: false, limit: 100)
        else {
            Issue.record("the transfer is not resumed")
            return
        }
        #expect(more.fields[0].value == "bytes=7-")
    }

    @Test(arguments: [
        (206, "bytes 4-9/10", "456789", true), (206, "bytes 5-9/11", "56789", true),
        (206, "bytes 5-9/10", "5678", true),
        (206, "items 5-9/10", "56789", true), (206, "bytes 5-/10", "56789", true), (206, "", "56789", true),
        (206, "bytes 9-5/10", "56789", true), (416, "bytes */5", "", true), (500, "", "x", true),
        (200, "", "01", false),
    ])
    func rejectsMismatchedResponses(_ status: Int, _ range: String, _ body: String, _ isWhole: Bool) throws {
        let resumption = try #require(RangeResume(Self.first))
        let rest = Self.response(status, range.isEmpty ? [] : [("Content-Range", range)], body)
        guard case .useless = resumption.joined(with: rest, isWhole: isWhole, limit: 100) else {
            Issue.record("\(status) \(range) is accepted")
            return
        }
    }

    @Test(arguments: [
        "bytes 0-9/10", "bytes 0-9/*", "bytes 5-1125899906842623/1125899906842624", "bytes 5-1125899906842623/*",
    ])
    func parsesValidRanges(text: String) {
        let isValid = RangeResume.range(text) != nil
        #expect(isValid)
    }

    /// RFC 9110, section 14.4, and ranges beyond 2^50 bytes.
    @Test(arguments: [
        "bytes 0-9/9", "bytes 0-9/0", "bytes 0-9/", "bytes 5-9223372036854775807/*",
        "bytes 5-9223372036854775806/9223372036854775807", "bytes 0-9/9223372036854775807",
        "bytes 5-1125899906842624/*", "bytes 0-9/1125899906842625", "bytes 0-99999999999999999999/*",
    ])
    func rejectsInvalidAndHugeRanges(text: String) {
        let isValid = RangeResume.range(text) != nil
        #expect(!isValid)
    }

    @Test(arguments: [true, false]) func limitsTheSizeOfAllParts(isWhole: Bool) throws {
        let resumption = try #require(RangeResume(Self.first))
        let rest = Self.response(206, [("Content-Range", "bytes 5-9/10")], "56789")
        if case .tooLarge = resumption.joined(with: rest, isWhole: isWhole, limit: 10) {
            Issue.record("a source of the maximum size is rejected")
        }
        guard case .tooLarge = resumption.joined(with: rest, isWhole: isWhole, limit: 9) else {
            Issue.record("a source beyond the limit is accepted")
            return
        }
        // A whole response replaces the part.
        let anew = Self.response(200, [], "new")
        guard case .anew = resumption.joined(with: anew, isWhole: true, limit: 5) else {
            Issue.record("a new response counts the part that it replaces")
            return
        }
    }

    @Test func restartsWhenSourceHasChanged() throws {
        let resumption = try #require(RangeResume(Self.first))
        let anew = Self.response(200, [], "new")
        guard case .anew(let response) = resumption.joined(with: anew, isWhole: true, limit: 100) else {
            Issue.record("the transfer does not restart")
            return
        }
        #expect(response.body == Array("new".utf8))
    }
}
