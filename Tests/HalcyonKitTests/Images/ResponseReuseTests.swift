import Foundation
import Testing

@testable import HalcyonKit

/// The rules by which responses are reused.
@Suite struct ResponseReuseTests {
    private static let now = Date(timeIntervalSince1970: 784_111_777)  // Sun, 06 Nov 1994 08:49:37 GMT

    /// Header fields, whether the response may be stored, and its lifetime in seconds.
    private static let cases: [(fields: [String: String], mayStore: Bool, lifetime: Double?)] = [
        ([:], true, nil),
        (["Cache-Control": "max-age=60"], true, 60),
        (["Cache-Control": "public, MAX-AGE = 60 , immutable"], true, 60),
        (["Cache-Control": "private, max-age=\"60\""], true, 60),
        (["Cache-Control": "max-age=60", "Age": "45"], true, 15),
        (["Cache-Control": "max-age=60", "Age": "61"], true, 0),
        (["Cache-Control": "max-age=60", "Age": "-5"], true, 60),
        (["Cache-Control": "max-age=60, max-age=60"], true, 60),
        (["Cache-Control": "max-age=60, max-age=90"], true, 0),
        (["Cache-Control": "max-age=soon"], true, 0),
        (["Cache-Control": "max-age"], true, 0),
        (["Cache-Control": "max-age=99999999999999999999"], true, 365 * 86_400),
        (["Cache-Control": "no-store"], false, 0),
        (["Cache-Control": "max-age=60, no-store"], false, 0),
        (["Cache-Control": "no-cache, max-age=60"], true, 0),
        (["Cache-Control": "extension=\"a, no-store\", max-age=60"], true, 60),
        (["Cache-Control": "s-maxage=60"], true, nil),
        (["Expires": "Sun, 06 Nov 1994 08:50:37 GMT"], true, 60),
        (["Expires": "Sun, 06 Nov 1994 08:50:37 GMT", "Date": "Sun, 06 Nov 1994 08:50:07 GMT"], true, 30),
        (["Expires": "Sun, 06 Nov 1994 08:48:37 GMT"], true, 0),
        (["Expires": "0"], true, 0),
        (["Expires": "Sun, 06 Nov 1994 08:50:37 GMT", "Cache-Control": "max-age=5"], true, 5),
    ]

    @Test(arguments: cases.indices) func readsHeaderFields(index: Int) {
        let (fields, mayStore, lifetime) = Self.cases[index]
        let reuse = ResponseReuse(now: Self.now) { fields[$0] }
        #expect(reuse.mayStore == mayStore && reuse.lifetime == lifetime.map { .seconds($0) }, "\(fields) \(reuse)")
    }
}
