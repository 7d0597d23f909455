import HalcyonModel
import Telemetry

extension LogFields {
    /// The fields `code` and `reason` of a failure, and where an error led to it `cause_type` and `cause`; none without
    /// a failure.
    public init(_ failure: Failure?) {
        self.init()
        guard let failure else { return }
        let cause = failure.cause.map { DescribedError($0) }
        self = [
            "code": failure.code.rawValue, "reason": failure.message, "cause_type": cause?.kind, "cause": cause?.text,
        ]
    }
}
