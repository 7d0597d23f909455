import Formats
import HalcyonModel
import Testing

@Suite struct FreshnessVectorTests {
    struct Vector: Decodable {
        struct Expectation: Decodable {
            let stored: Bool
            let ttl: Double?
        }
        let id: String
        let name: String
        let maxAge: Double
        let headers: [String: String]
        let completedAt: Double
        let expect: Expectation

        var expected: ResultTTL {
            expect.stored ? expect.ttl.map(ResultTTL.seconds) ?? .standard : .notStored
        }
    }

    @Test func matchesPublishedVectors() throws {
        let vectors = try vectors("freshness", as: Vector.self)
        #expect(vectors.count >= 25)
        for vector in vectors {
            let lifetime = ResultTTL(
                maxAge: vector.maxAge, headers: HTTPFields(vector.headers.map { HTTPFields.Field($0.key, $0.value) }),
                completedAt: vector.completedAt)
            #expect(lifetime == vector.expected, "\(vector.id) \(vector.name)")
        }
    }

    static let now = 784_111_777.0  // Sun, 06 Nov 1994 08:49:37 GMT

    @Test(arguments: [
        ("max-age=60, no-store", ResultTTL.notStored),
        ("no-cache=\"Set-Cookie\", max-age=60", .notStored),
        ("private, max-age=5", .seconds(5)),
        ("s-maxage=10", .standard),
        ("max-age=-5", .notStored),
        ("max-age=", .notStored),
        ("max-age", .notStored),
        ("max-age=99999999999999999999", .seconds(2_147_483_648)),
        ("foo=\"max-age=1, no-store\", max-age=9", .seconds(9)),
        ("  MAX-AGE = 7 ,,", .seconds(7)),
        ("xmax-age=3", .standard),
        ("", .standard),
    ])
    func readsCacheControl(field: String, expected: ResultTTL) {
        let lifetime = ResultTTL(
            maxAge: 0, headers: ["Cache-Control": field], completedAt: Self.now)
        #expect(lifetime == expected)
    }

    @Test func capsMaxAgeAt2147483648Seconds() {
        let lifetime = ResultTTL(maxAge: .greatestFiniteMagnitude, headers: [:], completedAt: Self.now)
        #expect(lifetime == .seconds(2_147_483_648))
    }

    @Test func joinsRepeatedCacheControlFields() {
        let headers: HTTPFields = ["cache-control": "public", "Cache-Control": "max-age=8"]
        #expect(ResultTTL(maxAge: 0, headers: headers, completedAt: Self.now) == .seconds(8))
    }

    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777.0), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ("Sun Nov  6 08:49:37 1994", 784_111_777), ("06 Nov 1994 08:49 GMT", 784_111_740),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Sat, 29 Feb 2020 12:00:00 GMT", 1_582_977_600),
    ])
    func readsDates(text: String, seconds: Double) {
        #expect(HTTPDate.seconds(of: text, now: Self.now) == seconds)
    }

    @Test(arguments: [
        "", "0", "-1", "tomorrow", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT", "06 Nov 1994",
        "Sun, 06 Nov 1994 08:49:37 PST", "Sun, 06 Nov 1994 08:49:37 GMT 5", "Sun, 06 Nov Nov 1994 08:49:37 GMT",
    ])
    func rejectsInvalidDates(text: String) {
        #expect(HTTPDate.seconds(of: text, now: Self.now) == nil)
    }

    @Test func twoDigitYearsAreAtMostFiftyYearsAhead() {
        let in2026 = 1_795_000_000.0
        let text = "Sunday, 06-Nov-94 08:49:37 GMT"
        #expect(HTTPDate.seconds(of: text, now: in2026) == 784_111_777)
        #expect(HTTPDate.seconds(of: "06-Nov-30 08:49:37 GMT", now: in2026)! > in2026)
    }
}
