package org.example.halcyon;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/** Random, exponentially growing pauses, so that the clients of a lost gateway do not all return at once. */
final class Backoff {
    private final Duration maximum;
    private Duration base;
    private int failures;

    Backoff(Duration base, Duration maximum) {
        this.base = base;
        this.maximum = maximum;
    }

    void setBase(Duration base) {
        this.base = base;
    }

    /** Starts again with the shortest pause. */
    void reset() {
        failures = 0;
    }

    /** The next pause, plus a random part of up to a half, and at least the time that the gateway asked for. */
    Duration next(Throwable error) {
        long limit = Math.max(base.toMillis(), maximum.toMillis());
        long pause = Math.min(base.toMillis() << Math.min(failures++, 16), limit);
        Duration random = Duration.ofMillis((long) (pause * ThreadLocalRandom.current().nextDouble(1, 1.5)));
        Duration least = error instanceof ProblemException problem ? problem.retryAfter() : Duration.ZERO;
        return random.compareTo(least) < 0 ? least : random;
    }
}
