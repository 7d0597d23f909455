import Foundation
import HalcyonModel
import HalcyonSources
import Telemetry
import TestSupport
import Testing

/// The log names the error that led to a failure; events do not.
@Suite(.limitedParallelism) struct FailureCauseTests {
    private struct Refused: Error, CustomStringConvertible {
        enum Code { case overdrawn }
        let code = Code.overdrawn
        let description = "the account is overdrawn"
    }

    private struct Lender: CustomSourceProvider {
        let name = "lend"

        func fetch(_ reference: String, ifNoneMatch known: Validators?) async throws -> FetchResponse {
            throw Refused()
        }
    }

    @Test func logsTheErrorTypeOfACustomProvider() async throws {
        let sink = RecordingLogSink()
        let providers = try CustomProviders([Lender()])
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(log: Log(level: .info, sink: sink), { $0.providers = providers }) {
                try await cluster.submit(#"{"id":"a","source":"lend:a"}"#)
                let event = try await cluster.events.terminal(of: "a")
                #expect(event.code == "provider_error" && event.message == "lend: the account is overdrawn")
                // The cause appears once.
                #expect("\(event.json)".components(separatedBy: "overdrawn").count == 2)
            }
        }
        let line = try await sink.first("job failed")
        #expect(line.fields["reason"] == .string("lend: the account is overdrawn"))
        #expect(line.fields["cause_type"] == .string("Refused.overdrawn"))
        #expect(line.fields["cause"] == .string("the account is overdrawn"))
    }

    private struct Quitter: CustomSourceProvider {
        let name = "quit"

        func fetch(_ reference: String, ifNoneMatch known: Validators?) async throws -> FetchResponse {
            throw CancellationError()
        }
    }

    @Test func providerThatCancelsItselfFailsItsJobs() async throws {
        let providers = try CustomProviders([Quitter()])
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.providers = providers }) {
                try await cluster.submit(#"{"id":"image","source":"quit:a","width":9}"#)
                try await cluster.submit(#"{"id":"prefetch","source":"quit:a","prefetch":true}"#)
                for id in ["image", "prefetch"] {
                    let event = try await cluster.events.terminal(of: id)
                    #expect(event.code == "provider_error", "\(event.message)")
                }
            }
        }
    }

    @Test func omitsCauseFieldsWithoutAnUnderlyingError() async throws {
        let sink = RecordingLogSink()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(log: Log(level: .info, sink: sink)) {
                try await cluster.submit(#"{"id":"a","source":"file:///nowhere.jpg"}"#)
                #expect(try await cluster.events.terminal(of: "a").code == "forbidden")
            }
        }
        let line = try await sink.first("job failed")
        #expect(line.fields["cause_type"] == nil && line.fields["cause"] == nil)
    }
}
