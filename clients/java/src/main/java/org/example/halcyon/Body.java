package org.example.halcyon;

import java.io.ByteArrayOutputStream;
import java.net.http.HttpResponse.BodySubscriber;
import java.net.http.HttpTimeoutException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;

/** The body of a response: up to a limit, and without long silence. */
final class Body implements BodySubscriber<byte[]> {
    private final CompletableFuture<byte[]> body = new CompletableFuture<>();
    private final ByteArrayOutputStream received = new ByteArrayOutputStream();
    private final long limit;
    private final Duration timeout;
    private volatile Flow.Subscription subscription;
    private volatile long lastReceived = System.nanoTime();

    Body(long limit, Duration timeout) {
        this.limit = limit;
        this.timeout = timeout;
        watch(timeout);
    }

    private void watch(Duration rest) {
        Operation.delay(rest).thenRun(() -> {
            Duration left = timeout.minusNanos(System.nanoTime() - lastReceived);
            if (body.isDone()) return;
            if (left.isNegative() || left.isZero()) fail(new HttpTimeoutException("nothing was received for " + timeout));
            else watch(left);
        });
    }

    private void fail(Throwable error) {
        body.completeExceptionally(error);
        if (subscription != null) subscription.cancel();
    }

    @Override
    public CompletionStage<byte[]> getBody() {
        return body;
    }

    @Override
    public void onSubscribe(Flow.Subscription subscription) {
        this.subscription = subscription;
        subscription.request(Long.MAX_VALUE);
    }

    @Override
    public void onNext(List<ByteBuffer> buffers) {
        lastReceived = System.nanoTime();
        for (ByteBuffer buffer : buffers) {
            if (received.size() + buffer.remaining() > limit) {
                fail(new ResponseTooLargeException(limit));
                return;
            }
            byte[] bytes = new byte[buffer.remaining()];
            buffer.get(bytes);
            received.writeBytes(bytes);
        }
    }

    @Override
    public void onError(Throwable error) {
        body.completeExceptionally(error);
    }

    @Override
    public void onComplete() {
        body.complete(received.toByteArray());
    }
}
