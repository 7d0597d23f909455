import Formats
import HalcyonModel
import Testing

/// RFC 9111 and RFC 5861, rule by rule.
@Suite struct StoredResponseTests {
    static let now = 784_111_777.0  // Sun, 06 Nov 1994 08:49:37 GMT

    static func response(
        _ headers: HTTPFields, status: Int = 200, request: HTTPFields = [:], delay: Double = 0
    ) -> StoredResponse {
        StoredResponse(status: status, headers: headers, request: request, requestedAt: now - delay, receivedAt: now)
    }

    static func freshness(
        _ headers: HTTPFields, after seconds: Double = 0, delay: Double = 0,
        _ policy: FreshnessPolicy = FreshnessPolicy()
    ) -> SourceFreshness {
        response(headers, delay: delay).freshness(after: seconds, policy)
    }

    @Test(
        arguments: [
            // Section 4.2.1: for a shared cache s-maxage, else max-age, else Expires.
            (["Cache-Control": "max-age=60, s-maxage=90", "Expires": "Sun, 06 Nov 1994 08:50:37 GMT"], 90.0),
            (["Cache-Control": "max-age=60", "Expires": "Sun, 06 Nov 1994 09:49:37 GMT"], 60),
            (["Expires": "Sun, 06 Nov 1994 09:49:37 GMT"], 3600),
            // Expires is relative to the origin's clock.
            (["Expires": "Sun, 06 Nov 1994 09:49:37 GMT", "Date": "Sun, 06 Nov 1994 09:39:37 GMT"], 600),
            // Section 4.2.3: the age in the field Age, or derived from Date.
            (["Cache-Control": "max-age=60", "Age": "20"], 40),
            (["Cache-Control": "max-age=60", "Date": "Sun, 06 Nov 1994 08:49:07 GMT"], 30),
            (["Cache-Control": "max-age=60", "Age": "20", "Date": "Sun, 06 Nov 1994 08:49:07 GMT"], 30),
            (["Cache-Control": "max-age=60", "Age": "-5"], 60),
            // The first of several is used.
            (["Cache-Control": "max-age=60", "Age": "20, 0"], 40),
            (["Cache-Control": "max-age=60", "Age": "20", "Age": "0"], 40),
            (["Cache-Control": "max-age=60", "Age": "\t20 ,0"], 40),
            // A malformed age is ignored.
            (["Cache-Control": "max-age=60", "Age": "rubbish"], 60),
            (["Cache-Control": "max-age=60", "Age": "inf"], 60),
            (["Cache-Control": "max-age=60", "Age": "1e999"], 60),
            (["Cache-Control": "max-age=60", "Age": "1.5"], 60),
            (["Cache-Control": "max-age=60", "Age": ""], 60),
            (["Cache-Control": "max-age=60", "Date": "rubbish"], 60),
            // A clock that is ahead does not reduce the age.
            (["Cache-Control": "max-age=60", "Date": "Sun, 06 Nov 1994 09:49:37 GMT"], 60),
            (["cache-control": "max-age=1", "CACHE-CONTROL": "max-age=9"], 1),
        ] as [(HTTPFields, Double)])
    func computesFreshnessLifetime(_ headers: HTTPFields, _ seconds: Double) {
        #expect(Self.freshness(headers) == .fresh(seconds: seconds))
        #expect(Self.freshness(headers, after: seconds - 1) == .fresh(seconds: 1))
        #expect(Self.freshness(headers, after: seconds) == .stale(whileRevalidating: false, onError: false))
    }

    @Test(arguments: [
        HTTPFields(), ["Cache-Control": "max-age=0"], ["Cache-Control": "max-age=1.5"], ["Expires": "0"],
        ["Cache-Control": "no-cache, max-age=60"], ["Cache-Control": "no-cache=\"Set-Cookie\", max-age=60"],
        ["Cache-Control": "s-maxage=0, max-age=60"], ["Last-Modified": "Sun, 06 Nov 1993 08:49:37 GMT"],
    ])
    func isStaleImmediately(_ headers: HTTPFields) {
        #expect(Self.freshness(headers) == .stale(whileRevalidating: false, onError: false))
    }

    @Test func capsAgeAt2147483648Seconds() {
        let digits = String(repeating: "9", count: 400)
        let age = Self.response(["Cache-Control": "max-age=60", "Age": digits]).initialAge
        #expect(age == 2_147_483_648)
    }

    @Test func responseDelayCountsAsAge() {
        #expect(Self.freshness(["Cache-Control": "max-age=60"], delay: 4) == .fresh(seconds: 56))
        #expect(Self.freshness(["Cache-Control": "max-age=60", "Age": "0"], delay: 4) == .fresh(seconds: 56))
    }

    @Test func appliesHeuristicFreshnessIfEnabled() {
        var policy = FreshnessPolicy()
        policy.heuristicFraction = 0.1
        // Ten days.
        let headers: HTTPFields = ["Last-Modified": "Thu, 27 Oct 1994 08:49:37 GMT"]
        #expect(Self.freshness(headers, policy) == .fresh(seconds: 86_400))
        #expect(Self.freshness(["Last-Modified": "Sun, 06 Nov 1994 07:49:37 GMT"], policy) == .fresh(seconds: 360))
        #expect(Self.freshness(["Last-Modified": "Sun, 06 Nov 1994 09:49:37 GMT"], policy) != .fresh(seconds: 360))
        #expect(
            Self.freshness(
                ["Last-Modified": "Sun, 06 Nov 1994 07:49:37 GMT", "Cache-Control": "max-age=9"], policy)
                == .fresh(seconds: 9))
    }

    @Test func staleUseFollowsRFC5861() {
        let headers: HTTPFields = ["Cache-Control": "max-age=10, stale-while-revalidate=20, stale-if-error=40"]
        #expect(Self.freshness(headers, after: 29) == .stale(whileRevalidating: true, onError: true))
        #expect(Self.freshness(headers, after: 31) == .stale(whileRevalidating: false, onError: true))
        #expect(Self.freshness(headers, after: 51) == .stale(whileRevalidating: false, onError: false))
        var policy = FreshnessPolicy()
        (policy.staleWhileRevalidate, policy.staleIfError) = (5, 100)
        #expect(
            Self.freshness(["Cache-Control": "max-age=10"], after: 12, policy)
                == .stale(whileRevalidating: true, onError: true))
        #expect(Self.freshness(headers, after: 51, policy) == .stale(whileRevalidating: false, onError: false))
        for word in ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=10"] {
            #expect(
                Self.freshness(["Cache-Control": "max-age=10, \(word), stale-if-error=40"], after: 12, policy)
                    == .stale(whileRevalidating: false, onError: false))
        }
    }

    @Test(
        arguments: [
            ([:], [:], true),
            (["Cache-Control": "no-store"], [:], false),
            (["Cache-Control": "private"], [:], false),
            (["Cache-Control": "private=\"x\", max-age=9"], [:], false),
            (["Cache-Control": "no-cache"], [:], true),
            (["Vary": "Accept, *"], [:], false),
            (["Vary": "Accept"], [:], true),
            // Section 3.5.
            (["Cache-Control": "max-age=9"], ["Authorization": "Basic eA=="], false),
            (["Cache-Control": "public"], ["authorization": "Basic eA=="], true),
            (["Cache-Control": "s-maxage=9"], ["Authorization": "Basic eA=="], true),
            (["Cache-Control": "must-revalidate"], ["Authorization": "Basic eA=="], true),
        ] as [(HTTPFields, HTTPFields, Bool)])
    func followsStorageRulesOfSharedCaches(_ headers: HTTPFields, _ request: HTTPFields, _ expected: Bool) {
        #expect(Self.response(headers, request: request).mayBeStored(request: request) == expected)
    }

    /// Effects of redirects on a response that is fresh for 60 seconds.
    @Test(
        arguments: [
            ([(302, ["Cache-Control": "max-age=20"])], .seconds(20), .fresh(seconds: 20), true),
            ([(302, ["Cache-Control": "max-age=90"])], .seconds(60), .fresh(seconds: 60), true),
            ([(301, [:])], .seconds(60), .fresh(seconds: 60), true),
            ([(308, [:])], .seconds(60), .fresh(seconds: 60), true),
            ([(302, [:])], .notStored, stale, true), ([(303, [:])], .notStored, stale, true),
            ([(307, [:])], .notStored, stale, true),
            ([(302, ["Expires": "0"])], .notStored, stale, true),
            ([(301, ["Cache-Control": "no-cache"])], .notStored, stale, true),
            ([(301, ["Cache-Control": "no-store"])], .notStored, .fresh(seconds: 60), false),
            ([(301, ["Cache-Control": "private, max-age=30"])], .seconds(30), .fresh(seconds: 30), false),
            ([(301, ["Vary": "*"])], .seconds(60), .fresh(seconds: 60), false),
            ([(302, ["Cache-Control": "max-age=40, s-maxage=30"])], .seconds(40), .fresh(seconds: 30), true),
            ([(302, ["Cache-Control": "max-age=40", "Age": "15"])], .seconds(40), .fresh(seconds: 25), true),
            (
                [(301, ["Cache-Control": "max-age=40"]), (302, ["Expires": "Sun, 06 Nov 1994 08:49:47 GMT"])],
                .seconds(10), .fresh(seconds: 10), true
            ),
        ] as [([(Int, HTTPFields)], ResultTTL, SourceFreshness, Bool)])
    func redirectsLimitTheLifetime(
        _ redirects: [(Int, HTTPFields)], _ result: ResultTTL, _ source: SourceFreshness, _ isKept: Bool
    ) {
        var limits = RedirectLimits()
        for (status, headers) in redirects {
            limits.add(status: status, headers: headers, requestedAt: Self.now, receivedAt: Self.now)
        }
        var headers: HTTPFields = ["Cache-Control": "max-age=60"]
        headers[RedirectLimits.field] = limits.value(at: Self.now)
        #expect(ResultTTL(maxAge: 0, headers: headers, completedAt: Self.now) == result)
        #expect(ResultTTL(maxAge: 5, headers: headers, completedAt: Self.now) == .seconds(5))
        let response = Self.response(headers)
        #expect(response.freshness(after: 0) == source)
        #expect(response.mayBeStored(request: [:]) == isKept)
    }

    private static let stale = SourceFreshness.stale(whileRevalidating: false, onError: false)

    @Test func redirectDoesNotExtendTheLifetime() {
        var limits = RedirectLimits()
        limits.add(
            status: 302, headers: ["Cache-Control": "max-age=90"], requestedAt: Self.now, receivedAt: Self.now)
        var headers = HTTPFields()
        headers[RedirectLimits.field] = limits.value(at: Self.now + 10)
        let lifetime = ResultTTL(maxAge: 0, headers: headers, completedAt: Self.now)
        #expect(lifetime == .standardUpTo(90))
        let rule = ResultTTLPolicy(maxAge: 0)
        #expect(rule.seconds(of: lifetime, age: 0, standard: 60, cut: 0) == 60)
        #expect(rule.seconds(of: lifetime, age: 0, standard: 600, cut: 0) == 90)
        #expect(Self.freshness(headers) == Self.stale)
        headers["Cache-Control"] = "max-age=600"
        #expect(Self.freshness(headers, after: 79) == .fresh(seconds: 1))
    }

    @Test func revalidationReplacesRedirectLimits() {
        let stored = Self.response(["Cache-Control": "max-age=60", RedirectLimits.field: "s-maxage=5, max-age=5"])
        #expect(stored.freshness(after: 0) == .fresh(seconds: 5))
        #expect(stored.confirmed(by: Self.response([:], status: 304)).freshness(after: 0) == .fresh(seconds: 60))
        let shorter = Self.response([RedirectLimits.field: "s-maxage=3"], status: 304)
        #expect(stored.confirmed(by: shorter).freshness(after: 0) == .fresh(seconds: 3))
    }

    @Test func matchesRequestsByVary() {
        let stored = Self.response(
            ["Vary": "accept, X-Kind"], request: ["Accept": "image/*", "User-Agent": "Halcyon"])
        #expect(stored.answers(request: ["User-Agent": "Other", "accept": "image/*"]))
        #expect(!stored.answers(request: ["Accept": "image/webp"]))
        #expect(!stored.answers(request: ["Accept": "image/*", "X-Kind": "1"]))
        #expect(Self.response([:]).answers(request: ["Accept": "image/webp"]))
    }

    /// A server may respond differently to the two encodings of é.
    @Test func comparesVaryingFieldsByBytes() {
        let stored = Self.response(["Vary": "X-Kind"], request: ["X-Kind": "caf\u{e9}"])
        #expect(stored.answers(request: ["X-Kind": "caf\u{e9}"]))
        #expect(!stored.answers(request: ["X-Kind": "cafe\u{301}"]))
        #expect(HTTPFields.Field("a", "\u{e9}") != HTTPFields.Field("a", "e\u{301}"))
    }

    @Test func revalidationRenewsFreshnessAndKeepsOtherFields() throws {
        let stored = Self.response([
            "Cache-Control": "max-age=10", "ETag": "\"a\"", "Age": "9", "Content-Type": "image/png",
        ])
        #expect(stored.freshness(after: 0) == .fresh(seconds: 1))
        #expect(stored.validators == Validators(etag: "\"a\""))
        let confirmed = stored.confirmed(
            by: Self.response(
                ["Cache-Control": "max-age=30", "Last-Modified": "Sun, 06 Nov 1994 07:49:37 GMT"], status: 304))
        #expect(confirmed.freshness(after: 0) == .fresh(seconds: 30))
        #expect(confirmed.status == 200 && confirmed.headers["Content-Type"] == "image/png")
        let validators = try #require(confirmed.validators)
        #expect(validators.etag == "\"a\"" && validators.lastModified == "Sun, 06 Nov 1994 07:49:37 GMT")
        #expect(Self.response([:]).validators == nil)
    }

    @Test(arguments: [
        (0.0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777.9, "Sun, 06 Nov 1994 08:49:37 GMT"),
        (951_826_154, "Tue, 29 Feb 2000 12:09:14 GMT"), (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
        (-1e18, "Mon, 01 Jan 0001 00:00:00 GMT"), (1e18, "Fri, 31 Dec 9999 23:59:59 GMT"),
    ])
    func roundTripsDates(_ seconds: Double, _ text: String) {
        #expect(HTTPDate.text(of: seconds) == text)
        if abs(seconds) < 1e12 { #expect(HTTPDate.seconds(of: text, now: Self.now) == seconds.rounded(.down)) }
    }
}
