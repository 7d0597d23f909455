import Telemetry
import Testing

@Suite struct TraceContextTests {
    static let example = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    @Test func readsAndWritesTheExample() throws {
        let context = try #require(TraceContext(traceparent: Self.example))
        #expect(context.traceID == "0af7651916cd43dd8448eb211c80319c")
        #expect(context.spanID == "b7ad6b7169203331")
        #expect(context.isSampled)
        #expect(context.traceparent == Self.example)
    }

    @Test(arguments: [
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-fe",
    ]) func readsFlags(header: String) {
        #expect(TraceContext(traceparent: header)?.isSampled == false)
        #expect(TraceContext(traceparent: header)?.traceparent.hasSuffix("-00") == true)
    }

    @Test(arguments: [
        "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes-next",
    ]) func readsFutureVersions(header: String) {
        #expect(TraceContext(traceparent: header)?.traceparent == Self.example)
    }

    @Test(arguments: [
        "", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
        "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x",
        "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01",
        " 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ]) func rejectsInvalidHeaders(header: String) {
        #expect(TraceContext(traceparent: header) == nil)
    }

    @Test func newContextsDifferAndRoundTrip() {
        var seen: Set<TraceContext> = []
        for isSampled in [true, false] {
            for _ in 0..<100 {
                let context = TraceContext(isSampled: isSampled)
                #expect(context.isSampled == isSampled)
                #expect(TraceContext(traceparent: context.traceparent) == context)
                seen.insert(context)
            }
        }
        #expect(seen.count == 200)
    }

    @Test func childKeepsTheTraceID() throws {
        let parent = try #require(TraceContext(traceparent: Self.example))
        let child = parent.child()
        #expect(child.traceID == parent.traceID)
        #expect(child.spanID != parent.spanID)
        #expect(child.isSampled)
    }
}
