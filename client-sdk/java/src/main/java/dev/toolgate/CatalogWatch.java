package dev.toolgate;

import dev.toolgate.v1.WatchCatalogRequest;
import dev.toolgate.v1.WatchCatalogResponse;
import io.grpc.Status;
import java.time.Duration;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.concurrent.Flow;

/**
 * The catalog's changes as they are committed, one after another. Waiting for the next one ends
 * when it comes, when the watch is closed, which another thread may do, or with a {@link
 * ToolgateException}. For use by one thread otherwise.
 *
 * <p>At most one change is held back here; the service gathers what comes meanwhile.
 */
public final class CatalogWatch implements Iterator<WatchCatalogResponse>, AutoCloseable {
    private final Flow.Subscription subscription;
    private WatchCatalogResponse held;
    private RuntimeException failure;
    private boolean closed;

    CatalogWatch(Connection connection, WatchCatalogRequest request, Duration openWithin) {
        CatalogStream stream = new CatalogStream(connection, request, openWithin, new Receiver());
        subscription = stream;
        stream.open();
    }

    /**
     * Waits for the next change.
     *
     * @return false when the watch was closed
     * @throws ToolgateException when it failed for good, or the thread was interrupted
     */
    @Override
    public synchronized boolean hasNext() {
        while (isWaiting()) {
            await(0);
        }
        return isThere();
    }

    /**
     * Waits for the next change, and takes it.
     *
     * @return the change
     * @throws NoSuchElementException when the watch was closed
     * @throws ToolgateException when it failed for good, or the thread was interrupted
     */
    @Override
    public synchronized WatchCatalogResponse next() {
        if (!hasNext()) {
            throw new NoSuchElementException("the watch is closed");
        }
        return taken();
    }

    /**
     * Waits so long for the next change, and takes it.
     *
     * @param timeout how long
     * @return the change; empty when none came, or the watch was closed
     * @throws ToolgateException when it failed for good, or the thread was interrupted
     */
    public synchronized Optional<WatchCatalogResponse> poll(Duration timeout) {
        long end = System.nanoTime() + timeout.toNanos();
        for (long left = timeout.toNanos();
                isWaiting() && left > 0;
                left = end - System.nanoTime()) {
            await(left / 1_000_000 + 1);
        }
        return isThere() ? Optional.of(taken()) : Optional.empty();
    }

    /** Stops following; whoever waits is let go. */
    @Override
    public synchronized void close() {
        closed = true;
        held = null;
        subscription.cancel();
        notifyAll();
    }

    private boolean isWaiting() {
        return held == null && failure == null && !closed;
    }

    private boolean isThere() {
        if (held == null && failure != null && !closed) {
            throw failure;
        }
        return held != null;
    }

    private WatchCatalogResponse taken() {
        WatchCatalogResponse change = held;
        held = null;
        subscription.request(1);
        return change;
    }

    private void await(long millis) {
        try {
            wait(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw ToolgateException.withoutDetails(
                    Status.Code.CANCELLED, "the waiting thread was interrupted", e);
        }
    }

    /** What the stream gives. */
    private final class Receiver implements Flow.Subscriber<WatchCatalogResponse> {
        @Override
        public void onSubscribe(Flow.Subscription given) {
            given.request(1);
        }

        @Override
        public void onNext(WatchCatalogResponse change) {
            synchronized (CatalogWatch.this) {
                held = closed ? null : change;
                CatalogWatch.this.notifyAll();
            }
        }

        @Override
        public void onError(Throwable error) {
            synchronized (CatalogWatch.this) {
                failure = (RuntimeException) error;
                CatalogWatch.this.notifyAll();
            }
        }

        @Override
        public void onComplete() {}
    }
}
