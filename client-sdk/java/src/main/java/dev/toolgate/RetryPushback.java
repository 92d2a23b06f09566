package dev.toolgate;

import io.grpc.ClientStreamTracer;
import io.grpc.Deadline;
import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * Lets gRPC's retries wait as long as the service asks. gRPC heeds a trailer of its own, {@code
 * grpc-retry-pushback-ms}, and not {@code google.rpc.RetryInfo}: what the latter says is written as
 * the former.
 */
final class RetryPushback extends ClientStreamTracer.Factory {
    static final RetryPushback INSTANCE = new RetryPushback();

    private static final Metadata.Key<String> PUSHBACK =
            Metadata.Key.of("grpc-retry-pushback-ms", Metadata.ASCII_STRING_MARSHALLER);
    private static final String NO_RETRY = "-1";

    private RetryPushback() {}

    @Override
    public ClientStreamTracer newClientStreamTracer(
            ClientStreamTracer.StreamInfo info, Metadata headers) {
        Deadline deadline = info.getCallOptions().getDeadline();
        return new ClientStreamTracer() {
            @Override
            public void inboundTrailers(Metadata trailers) {
                // With a pushback gRPC retries whatever the code is.
                ErrorDetails.of(trailers)
                        .filter(said -> said.code() == Status.Code.UNAVAILABLE.value())
                        .flatMap(ErrorDetails::retryAfter)
                        .ifPresent(delay -> pushBack(trailers, delay, deadline));
            }
        };
    }

    private static void pushBack(Metadata trailers, Duration delay, Deadline deadline) {
        trailers.discardAll(PUSHBACK);
        // Clients that were refused together shall not come back together.
        double jitter = ThreadLocalRandom.current().nextDouble(1.0, 1.2);
        long millis = (long) Math.ceil(delay.plusNanos(999_999).toMillis() * jitter);
        long left =
                deadline == null
                        ? Integer.MAX_VALUE
                        : deadline.timeRemaining(TimeUnit.MILLISECONDS);
        // Waiting past the deadline would only hide what the service said.
        trailers.put(PUSHBACK, millis < left ? Long.toString(millis) : NO_RETRY);
    }
}
