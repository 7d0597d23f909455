import HalcyonLeases
import HalcyonModel
import HalcyonRendering
import Threads

/// The making of some results of one source, for all who want them here and elsewhere. It runs in a task of its own, which is no job's.
struct SharedMaking: Sendable {
    let stage: Coalesce
    /// The job that began it: what is made is the same for all.
    let work: Work
    let flight: Flight<Wish, Making>

    /// A wish that is not fulfilled yet.
    struct Open: Sendable {
        let wish: Wish
        /// Where in the job that began the work it stands.
        let place: Int
        /// Whether what is in the result tier is of no use.
        let anew: Bool
        /// How often what was made for it was older than what is there.
        var rounds = 0

    }

    /// What is made goes to no other worker, for the job must not be shared or is content with what is there. A lease keeps nobody from
    /// making the same; it has the deaths counted, for the record that the job came in.
    private var isAlone: Bool { !work.sharesResults || work.job.cache.onlyIfCached }

    private func name(of open: Open) -> LeaseName {
        LeaseName(product: isAlone ? "\(open.wish.key):\(work.origin.coordinates)" : open.wish.key.description)
    }

    /// Lands each of these, made or not.
    /// - Throws: `CancellationError`.
    func run(_ open: [Open]) async throws {
        let kind = isAlone ? LeaseKind.unshared : .result
        try await stage.leases.attempting(open.map(name), kind, flight.urgency) { try await share(open, $0) }
    }

    private func share(_ wanted: [Open], _ attempt: LeaseAttempt) async throws {
        var open = wanted
        while !open.isEmpty {
            let answers = try await attempt.ask(open.map { (name(of: $0), $0.anew ? .anything : .nothing) })
            var (mine, without, held): ([(Open, Lease)], [Open], [Open]) = ([], [], [])
            for (wish, answer) in zip(open, answers) {
                switch answer {
                case .there: land(wish, .there)
                case .mine(let lease): mine.append((wish, lease))
                case .held: held.append(wish)
                case .without: without.append(wish)
                }
            }
            open = held
            if !without.isEmpty {
                try await makeWithoutLeases(without)
            } else if !mine.isEmpty {
                open += try await makeUnderLeases(mine, attempt)
            } else if !held.isEmpty {
                for (name, outcome) in try await attempt.wait(for: held.map(name)) {
                    guard case .failed(let reason) = outcome, let failure = Failure(shared: reason),
                        let index = open.firstIndex(where: { self.name(of: $0) == name })
                    else { continue }
                    land(open.remove(at: index), .failed(failure))
                }
            }
        }
    }

    private func makeWithoutLeases(_ open: [Open]) async throws {
        try await stage.withoutLeases.acquire(flight.urgency)
        defer { stage.withoutLeases.release() }
        for (wish, made) in try await make(open, fences: open.map { _ in 0 }).products {
            land(wish, .made(await keep(made) ?? made))
        }
    }

    /// What has done nobody any harm is made together; each of the rest by itself, so that it is known what a child dies of.
    /// - Returns: what has to be asked for again.
    private func makeUnderLeases(_ mine: [(wish: Open, lease: Lease)], _ attempt: LeaseAttempt) async throws -> [Open] {
        // Other workers may wait when nobody here does any more.
        flight.goesOn { await attempt.isWantedElsewhere() }
        defer { flight.goesOn(while: nil) }
        let trusted = mine.filter { $0.lease.deaths == 0 }
        var again = trusted.isEmpty ? [] : try await make(trusted, attempt, isolation: .whereNeeded)
        for suspect in mine where suspect.lease.deaths > 0 { again += try await tryOut(suspect, attempt) }
        return again
    }

    /// What a worker, or several, did not survive, or was unlucky with.
    private func tryOut(_ suspect: (wish: Open, lease: Lease), _ attempt: LeaseAttempt) async throws -> [Open] {
        let limits = stage.leases.options.deaths
        // Who wants it made anew has it tried again.
        guard suspect.lease.deaths < limits.coincidences || suspect.wish.anew else {
            land(suspect.wish, .failed(.knownPoison.of(variant: 0)))
            await attempt.finish(suspect.lease, .givenUp)
            return []
        }
        return try await make([suspect], attempt, isolation: .trial(children: max(1, limits.deaths - 1)))
    }

    private func make(
        _ mine: [(wish: Open, lease: Lease)], _ attempt: LeaseAttempt, isolation: RenderService.Isolation
    ) async throws -> [Open] {
        let (products, failure) = try await make(
            mine.map(\.wish), fences: mine.map { isAlone ? 0 : $0.lease.fence }, isolation: isolation)
        if let failure {
            // Of several it may be about another one.
            let outcome = mine.count == 1 && failure.isShared ? LeaseOutcome.failed(failure.shared) : .givenUp
            // Whoever asks in the next minutes is told at once, and no child has to die for it.
            let deaths = failure.code == .poison ? stage.leases.options.deaths.coincidences : nil
            for (_, lease) in mine { await attempt.finish(lease, outcome, deaths: deaths) }
        }
        var again: [Open] = []
        for ((wish, made), (_, lease)) in zip(products, mine) {
            if let kept = await keep(made) {
                await attempt.finish(lease, kept.isStored ? .stored : .unshared)
                land(wish, .made(kept))
            } else {
                // Whatever is there is newer; after a purge nothing is, and the source is to be asked again.
                attempt.wasFencedOut()
                var wish = wish
                wish.rounds += 1
                await attempt.finish(lease, .givenUp)
                if wish.rounds < Coalesce.mostRounds { again.append(wish) } else { land(wish, .made(made)) }
            }
        }
        return again
    }

    /// Makes these together. Where that fails over one of several, this one has failed, and who wants the others is to ask again.
    /// - Returns: what was made, all of it or nothing, and why nothing was.
    /// - Throws: `CancellationError`.
    private func make(
        _ open: [Open], fences: [Int], isolation: RenderService.Isolation = .whereNeeded
    ) async throws -> (products: [(Open, Made)], failure: Failure?) {
        do {
            let made = try await stage.make.make(
                open.map(\.place), of: work, fences: fences, urgency: flight.urgency, isolation: isolation,
                onBegin: flight.begin)
            return (Array(zip(open, made)), nil)
        } catch let failure as Failure {
            for (index, wish) in open.enumerated() {
                let isOthers = failure.variant.map { $0 != index } ?? false
                land(wish, isOthers ? .none : .failed(failure.variant == nil ? failure : failure.of(variant: 0)))
            }
            return ([], failure)
        }
    }

    /// - Returns: what became of it; nil when something newer is there, or it has been purged meanwhile.
    private func keep(_ made: Made) async -> Made? { isAlone ? made : await stage.store.keep(made, of: work) }

    private func land(_ wish: Open, _ making: Making) { flight.land(wish.wish, making) }
}
