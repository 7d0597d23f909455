import HalcyonModel
import TestSupport

/// A generator of jobs of all kinds with known outcomes. The sequence is the same for the same seed.
struct JobMix {
    private let origin: Origin
    private let kinds: [JobKind]
    private var numbers: SeededNumbers
    private var count = 0
    private var generations = 0

    /// The number of sources in use at a time. A source is replaced when `jobsPerSource` jobs have been drawn for each
    /// of them.
    private static let sourcesAtOnce = 20
    /// The number of jobs of a batch.
    static let jobsPerBatch = 100
    private static let jobsPerSource = 30
    static let sizes = [
        #""width":200,"height":150"#, #""width":120,"height":90"#, #""width":64,"height":64,"contentMode":"center""#,
        #""width":300"#, #""width":90,"height":120,"format":"png""#,
    ]

    /// Creates a generator.
    /// - Parameter kinds: The kinds to draw from, by weight.
    init(_ origin: Origin, seed: UInt64, kinds: [JobKind] = JobKind.usual) {
        self.origin = origin
        self.kinds = kinds
        numbers = SeededNumbers(seed: seed)
    }

    /// Puts the next jobs into a new batch.
    mutating func beginBatch() {
        count = (count + Self.jobsPerBatch - 1) / Self.jobsPerBatch * Self.jobsPerBatch
    }

    /// Draws the next job.
    mutating func next() -> DraftJob {
        var draw = Int.random(in: 0..<kinds.reduce(0) { $0 + $1.share }, using: &numbers)
        let kind = kinds.first { kind in
            draw -= kind.share
            return draw < 0
        }
        return next(kind!)
    }

    /// Draws the next job of a kind.
    mutating func next(_ kind: JobKind) -> DraftJob {
        count += 1
        let number = count / Self.jobsPerSource + Int.random(in: 0..<Self.sourcesAtOnce, using: &numbers)
        let size = Self.sizes.randomElement(using: &numbers)!
        let fresh = origin.fresh + "\(number)"
        switch kind {
        case .ordinary: return draft(kind, fresh, [size], delivery(), counts: true)
        case .slow: return draft(kind, origin.slow + "\(number / 10)", [size], counts: true)
        case .variants:
            return draft(kind, fresh, Array(Self.sizes.shuffled(using: &numbers).prefix(3)), counts: true)
        case .unstored: return draft(kind, fresh, [size], #","maxAge":-1"#, counts: true)
        case .volatile: return draft(kind, origin.volatile + "\(number / 20)", [size])
        case .required:
            let sizes = Array(Self.sizes.shuffled(using: &numbers).prefix(Int.random(in: 1...2, using: &numbers)))
            var job = draft(kind, fresh, sizes, #","cache":{"store":"required"}"# + delivery(), counts: true)
            job.requiresStore = true
            return job
        case .excluded:
            return draft(kind, fresh, [size], #","cache":{"store":false}"# + delivery(), counts: true)
        case .slot:
            generations += 1
            let slot = "cell-\(count / 2_000)-\(Int.random(in: 0..<10, using: &numbers))"
            var job = draft(
                kind, fresh, [size], #","slot":"\#(slot)","generation":\#(generations)"#,
                allowed: ["ready", "superseded"], counts: true)
            (job.slot, job.generation) = (slot, generations)
            return job
        case .cancelled:
            var job = draft(kind, fresh, [size], allowed: ["ready", "cancelled"], counts: true)
            job.isCancelled = true
            return job
        case .deadline:
            let deadline = Int.random(in: 1...5, using: &numbers)
            return draft(
                kind, fresh, [size], #","deadline":\#(deadline)"#, allowed: ["ready", "failed/expired"], counts: true)
        case .late:
            return draft(kind, fresh, [size], #","deadline":"2001-01-01T00:00:00Z""#, allowed: ["failed/expired"])
        case .scheduled:
            let seconds = Int.random(in: 1...8, using: &numbers)
            var job = draft(kind, fresh, [size], #","notBefore":\#(seconds)"#, counts: true)
            job.notBefore = Double(seconds)
            return job
        case .preset:
            // The same size as that of other jobs, whose results are the same.
            return draft(
                kind, fresh, [size], counts: true,
                output: #""preset":"\#(Self.preset(Self.sizes.firstIndex(of: size)!))""#)
        case .prefetch: return draft(kind, fresh, [], #","prefetch":true"#, counts: true, output: #""width":1"#)
        case .missing: return draft(kind, origin.missing + "\(number / 20)", [size], allowed: ["failed/not_found"])
        case .broken:
            // The circuit breaker opens for an origin that fails repeatedly.
            return draft(
                kind, origin.broken + "\(count)", [size],
                allowed: ["failed/http_error", "failed/connect_error", "failed/origin_unavailable"])
        case .hostile:
            let file = origin.hostile.randomElement(using: &numbers)!
            return draft(kind, file.url + "\(count)", [#""width":40,"height":40"#], allowed: file.ends)
        case .heavy:
            // Jobs with the same result would share it, so each has another size.
            let (width, height) = (200 + count % 400, 150 + count / 400 % 400)
            let size = #""width":\#(width),"height":\#(height),"format":"png""#
            return draft(
                kind, origin.heavy + "\(number % 3)", [size], #","maxAge":-1,"deadline":60"#,
                allowed: ["ready", "failed/expired"])
        case .invalid: return draft(kind, fresh, [#""width":-1"#], allowed: ["failed/invalid_job"])
        }
    }

    /// Returns the name of the preset with a size.
    static func preset(_ index: Int) -> String { "size-\(index)" }

    /// Draws the delivery of a job. Some events carry the bytes, so that they can be verified.
    private mutating func delivery() -> String {
        Int.random(in: 0..<4, using: &numbers) == 0 ? #","delivery":"inline""# : ""
    }

    /// - Parameters:
    ///   - sizes: The outputs, as members of a JSON object.
    ///   - members: Other members of the job, each after a comma.
    ///   - output: The members of the job that stand for the outputs, if they are not the outputs themselves.
    private mutating func draft(
        _ kind: JobKind, _ source: String, _ sizes: [String], _ members: String = "",
        allowed: Set<String> = ["ready"], counts: Bool = false, output: String? = nil
    ) -> DraftJob {
        let id = "\(kind.rawValue)-\(count)"
        let lane: Lane = [.normal, .normal, .normal, .high, .low].randomElement(using: &numbers)!
        let output =
            output
            ?? (sizes.count == 1
                ? sizes[0] : #""variants":[\#(sizes.map { "{\($0)}" }.joined(separator: ","))]"#)
        let batch = BatchMembership(
            batch: "chaos-\((count - 1) / Self.jobsPerBatch)", index: (count - 1) % Self.jobsPerBatch)
        let membership = #""batch":{"id":"\#(batch.batch)","index":\#(batch.index ?? 0)}"#
        return DraftJob(
            id: id, kind: kind, lane: lane,
            json: #"{"id":"\#(id)","source":"\#(source)",\#(membership),\#(output)\#(members)}"#,
            allowed: allowed, source: counts ? Origin.path(of: source) : nil,
            outputs: sizes.map { "\(Origin.picture(of: source)) \($0)" }, batch: batch)
    }
}
