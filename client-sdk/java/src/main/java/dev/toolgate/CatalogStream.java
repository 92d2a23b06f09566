package dev.toolgate;

import dev.toolgate.v1.CatalogServiceGrpc;
import dev.toolgate.v1.WatchCatalogRequest;
import dev.toolgate.v1.WatchCatalogResponse;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * One subscriber's stream of a catalog's changes, which survives the calls that it is made of: when
 * one breaks, the next one begins at the last revision that came.
 *
 * <p>Opening the first one, over as many calls as it takes, has a time limit; later ones are made
 * until the subscriber cancels.
 */
final class CatalogStream implements Flow.Subscription {
    private static final Status ENDED =
            Status.UNAVAILABLE.withDescription("the service ended the watch");
    private static final Duration SHORTEST_PAUSE = Duration.ofMillis(100);
    private static final Duration LONGEST_PAUSE = Duration.ofSeconds(5);

    private final Connection connection;
    private final Duration openWithin;
    private final Flow.Subscriber<? super WatchCatalogResponse> subscriber;
    private WatchCatalogRequest request;
    private Attempt current;
    private long demand;
    private final long openBy;
    private int failures;

    /** How the call before this one ended; null before there was one. */
    private RuntimeException refusal;

    private boolean wasOpen;
    private boolean done;

    CatalogStream(
            Connection connection,
            WatchCatalogRequest request,
            Duration openWithin,
            Flow.Subscriber<? super WatchCatalogResponse> subscriber) {
        connection.checkOpen();
        this.connection = connection;
        this.request = connection.withTenant(request);
        this.openWithin = openWithin;
        this.openBy = System.nanoTime() + openWithin.toNanos();
        this.subscriber = subscriber;
    }

    /** Tells the subscriber of its subscription, and makes the first call. */
    void open() {
        subscriber.onSubscribe(this);
        connect();
    }

    @Override
    public void request(long more) {
        if (more <= 0) {
            fail(
                    new IllegalArgumentException(
                            "asked for " + more + " changes: it must be above zero"));
            return;
        }
        synchronized (this) {
            demand = demand + more < 0 ? Long.MAX_VALUE : demand + more;
            if (current != null) {
                current.call.request((int) Math.min(more, Integer.MAX_VALUE));
            }
        }
    }

    @Override
    public synchronized void cancel() {
        done = true;
        if (current != null) {
            current.call.cancel("the watch was stopped", null);
            current = null;
        }
    }

    private synchronized void connect() {
        if (!done) {
            current = new Attempt();
            current.start();
        }
    }

    /** What came; false when nobody wants it any more. */
    private synchronized boolean take(Attempt attempt, WatchCatalogResponse answer) {
        if (attempt != current) {
            return false;
        }
        request = request.toBuilder().setSinceRevision(answer.getCatalogRevision()).build();
        demand--;
        failures = 0;
        return true;
    }

    private void ended(Attempt attempt, Status status, Metadata trailers) {
        RuntimeException failure;
        Duration pause;
        synchronized (this) {
            if (attempt != current) {
                return;
            }
            current = null;
            failures++;
            pause = longer(pause(failures), retryAfter(trailers));
            failure = failureOf(attempt, status, trailers, pause);
        }
        if (failure != null) {
            fail(failure);
            return;
        }
        after(pause).execute(this::connect);
    }

    /** What ends the stream for good; null when it may go on after a pause. */
    private RuntimeException failureOf(
            Attempt attempt, Status status, Metadata trailers, Duration pause) {
        boolean isLate = attempt.isLate;
        boolean mayGoOn = isLate || status.isOk() || status.getCode() == Status.Code.UNAVAILABLE;
        boolean givesUp = !wasOpen && (isLate || pause.toNanos() >= leftToOpen());
        RuntimeException failure =
                isLate ? late() : connection.failure(status.isOk() ? ENDED : status, trailers);
        if (mayGoOn && !givesUp && !connection.isClosed()) {
            refusal = failure;
            return null;
        }
        // The time that a refusal left says nothing of the service, and the refusal does.
        return isLate && !wasOpen && refusal != null ? refusal : failure;
    }

    private long leftToOpen() {
        return openBy - System.nanoTime();
    }

    private static Duration retryAfter(Metadata trailers) {
        return ErrorDetails.of(trailers).flatMap(ErrorDetails::retryAfter).orElse(Duration.ZERO);
    }

    /** Tells the subscriber, who may take locks of its own: never while this one is held. */
    private void fail(RuntimeException error) {
        synchronized (this) {
            if (done) {
                return;
            }
            cancel();
        }
        subscriber.onError(error);
    }

    private ToolgateException late() {
        return ToolgateException.withoutDetails(
                Status.Code.DEADLINE_EXCEEDED, "the watch was not open within " + openWithin, null);
    }

    private static Executor after(Duration pause) {
        return CompletableFuture.delayedExecutor(pause.toNanos(), TimeUnit.NANOSECONDS);
    }

    /** Doubled with each failure in a row, of which a random half is left away. */
    private static Duration pause(int failures) {
        long longest = SHORTEST_PAUSE.toNanos() << Math.min(failures - 1, 10);
        double part = ThreadLocalRandom.current().nextDouble(0.5, 1.0);
        return Duration.ofNanos((long) (Math.min(longest, LONGEST_PAUSE.toNanos()) * part));
    }

    private static Duration longer(Duration one, Duration other) {
        return one.compareTo(other) < 0 ? other : one;
    }

    /** One call. */
    private final class Attempt extends ClientCall.Listener<WatchCatalogResponse> {
        private final ClientCall<WatchCatalogRequest, WatchCatalogResponse> call =
                connection.stream(CatalogServiceGrpc.getWatchCatalogMethod());
        private boolean isOpen;
        private boolean isLate;

        void start() {
            call.start(this, new Metadata());
            call.sendMessage(request);
            call.halfClose();
            if (demand > 0) {
                call.request((int) Math.min(demand, Integer.MAX_VALUE));
            }
            after(wasOpen ? openWithin : Duration.ofNanos(Math.max(0, leftToOpen())))
                    .execute(this::checkIsOpen);
        }

        @Override
        public void onHeaders(Metadata headers) {
            synchronized (CatalogStream.this) {
                isOpen = true;
                wasOpen = true;
            }
        }

        @Override
        public void onMessage(WatchCatalogResponse answer) {
            if (take(this, answer)) {
                subscriber.onNext(answer);
            }
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            ended(this, status, trailers);
        }

        private void checkIsOpen() {
            synchronized (CatalogStream.this) {
                if (!isOpen && this == current) {
                    isLate = true;
                    call.cancel("not open in time", null);
                }
            }
        }
    }
}
