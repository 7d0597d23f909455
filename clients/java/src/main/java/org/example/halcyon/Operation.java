package org.example.halcyon;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.Function;

/** A future of several steps. Cancelling it cancels the step that it waits for. */
class Operation<T> extends CompletableFuture<T> {
    private CompletableFuture<?> step = completedFuture(null);
    private CompletableFuture<?> cleanup;

    /** Waits for a step, and calls the function with its result or its exception, unless the operation has ended by then. */
    final <S> void await(CompletableFuture<S> step, BiConsumer<S, Throwable> then) {
        synchronized (this) {
            this.step = step;
        }
        if (isDone()) step.cancel(true);
        step.whenCompleteAsync((value, error) -> {
            if (isDone()) return;
            try {
                then.accept(value, unwrap(error));
            } catch (RuntimeException | Error failure) {
                completeExceptionally(failure);
            }
        });
    }

    @Override
    public boolean cancel(boolean interrupts) {
        boolean isCancelled = super.cancel(interrupts);
        step().cancel(interrupts);
        return isCancelled;
    }

    private synchronized CompletableFuture<?> step() {
        return step;
    }

    /** Sets what is still done after the end of the operation. */
    final synchronized void setCleanup(CompletableFuture<?> cleanup) {
        this.cleanup = cleanup;
    }

    /** What is still done after the end of the operation. */
    final synchronized CompletableFuture<?> cleanup() {
        if (cleanup != null) return cleanup;
        return step instanceof Operation<?> operation ? operation.cleanup() : completedFuture(null);
    }

    static <S, T> Operation<T> map(CompletableFuture<S> step, Function<S, T> convert) {
        return then(step, value -> completedFuture(convert.apply(value)));
    }

    static <S, T> Operation<T> then(CompletableFuture<S> first, Function<S, CompletableFuture<T>> next) {
        Operation<T> operation = new Operation<>();
        operation.await(first, (value, error) -> {
            if (error != null) operation.completeExceptionally(error);
            else operation.await(next.apply(value), operation::end);
        });
        return operation;
    }

    final void end(T value, Throwable error) {
        if (error != null) completeExceptionally(error);
        else complete(value);
    }

    static CompletableFuture<Void> delay(Duration duration) {
        return new CompletableFuture<Void>().completeOnTimeout(null, duration.toNanos(), TimeUnit.NANOSECONDS);
    }

    static Throwable unwrap(Throwable error) {
        return error instanceof CompletionException && error.getCause() != null ? error.getCause() : error;
    }
}
