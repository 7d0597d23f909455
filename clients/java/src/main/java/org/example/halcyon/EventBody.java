package org.example.halcyon;

import java.net.http.HttpResponse.BodySubscriber;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The body of a response that is read part by part. At most one part is buffered. */
final class EventBody implements BodySubscriber<EventBody> {
    /** A part, or the end with the exception that caused it, if there is one. */
    record Part(byte[] bytes, Throwable error) {}

    private final BlockingQueue<Part> parts = new LinkedBlockingQueue<>();
    private volatile Flow.Subscription subscription;

    /** Waits for the next part; null if there is none for this time. */
    Part take(Duration timeout) throws InterruptedException {
        Part part = parts.poll(timeout.toNanos(), TimeUnit.NANOSECONDS);
        if (part != null && part.bytes != null) subscription.request(1);
        return part;
    }

    void cancel() {
        if (subscription != null) subscription.cancel();
        onComplete();
    }

    @Override
    public CompletionStage<EventBody> getBody() {
        return CompletableFuture.completedFuture(this);
    }

    @Override
    public void onSubscribe(Flow.Subscription subscription) {
        this.subscription = subscription;
        subscription.request(1);
    }

    @Override
    public void onNext(List<ByteBuffer> buffers) {
        ByteBuffer joined = ByteBuffer.allocate(buffers.stream().mapToInt(ByteBuffer::remaining).sum());
        buffers.forEach(joined::put);
        parts.add(new Part(joined.array(), null));
    }

    @Override
    public void onError(Throwable error) {
        parts.add(new Part(null, error));
    }

    @Override
    public void onComplete() {
        parts.add(new Part(null, null));
    }
}
