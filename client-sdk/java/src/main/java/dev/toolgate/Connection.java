package dev.toolgate;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import io.grpc.CallOptions;
import io.grpc.ChannelCredentials;
import io.grpc.ClientCall;
import io.grpc.ConnectivityState;
import io.grpc.Grpc;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** The channel that the clients share, and how a call is made over it. Knows no RPC. */
final class Connection implements AutoCloseable {
    // A page of 1,000 tools or 100 promoted schemas may pass gRPC's default of 4 MiB.
    private static final int MAX_RECEIVED_BYTES = 64 * 1024 * 1024;
    private static final Duration CLOSING = Duration.ofSeconds(2);
    private static final Duration CONNECTING = Duration.ofMillis(100);
    private static final Duration RECONNECT_EACH = Duration.ofSeconds(1);
    private static final Duration RECONNECT_AT_MOST_EACH = Duration.ofMillis(250);

    private final Target target;
    private final String tenant;
    private final ManagedChannel channel;
    private final CallOptions options;
    private final AtomicLong lastReconnect = new AtomicLong(System.nanoTime());

    Connection(
            Target target,
            String tenant,
            ChannelCredentials encryption,
            BearerCredentials credentials,
            String serverName) {
        this.target = target;
        this.tenant = tenant;
        CallOptions plain = CallOptions.DEFAULT.withStreamTracerFactory(RetryPushback.INSTANCE);
        this.options = credentials == null ? plain : plain.withCallCredentials(credentials);
        ManagedChannelBuilder<?> builder =
                Grpc.newChannelBuilder(target.toUri(), encryption)
                        .userAgent("toolgate-java/" + Version.CURRENT)
                        .maxInboundMessageSize(MAX_RECEIVED_BYTES)
                        .disableServiceConfigLookUp()
                        .defaultServiceConfig(serviceConfig())
                        .enableRetry()
                        // A watch has no deadline: this tells it that the other side is gone.
                        .keepAliveTime(30, TimeUnit.SECONDS)
                        .keepAliveTimeout(10, TimeUnit.SECONDS);
        if (serverName != null) {
            builder.overrideAuthority(serverName);
        }
        this.channel = builder.build();
        keepConnecting();
    }

    /** Makes a call and waits for its answer. */
    <Q extends Message, A> A call(MethodDescriptor<Q, A> method, Q request, Duration timeout) {
        checkOpen();
        CallOptions within = within(timeout);
        if (retryIfLost()) {
            LockSupport.parkNanos(pause(timeout).toNanos());
        }
        try {
            return ClientCalls.blockingUnaryCall(channel, method, within, withTenant(request));
        } catch (StatusRuntimeException e) {
            throw failure(e.getStatus(), e.getTrailers());
        }
    }

    /** Makes a call; cancelling the future cancels it. */
    <Q extends Message, A> CompletableFuture<A> start(
            MethodDescriptor<Q, A> method, Q request, Duration timeout) {
        checkOpen();
        ClientCall<Q, A> call = channel.newCall(method, within(timeout));
        CompletableFuture<A> answer = new CompletableFuture<>();
        Runnable begin =
                () -> {
                    if (!answer.isDone()) {
                        ClientCalls.asyncUnaryCall(call, withTenant(request), completing(answer));
                    }
                };
        if (retryIfLost()) {
            CompletableFuture.delayedExecutor(pause(timeout).toMillis(), TimeUnit.MILLISECONDS)
                    .execute(begin);
        } else {
            begin.run();
        }
        answer.whenComplete(
                (done, error) -> {
                    if (answer.isCancelled()) {
                        call.cancel("the future was cancelled", null);
                    }
                });
        return answer;
    }

    /** A call of a stream, which has no deadline. */
    <Q extends Message, A> ClientCall<Q, A> stream(MethodDescriptor<Q, A> method) {
        retryIfLost();
        return channel.newCall(method, options);
    }

    /** The request with this client's tenant, when it names none. */
    <Q extends Message> Q withTenant(Q request) {
        FieldDescriptor field = request.getDescriptorForType().findFieldByName("tenant");
        if (tenant.isEmpty() || !"".equals(request.getField(field))) {
            return request;
        }
        @SuppressWarnings("unchecked") // A message's builder builds messages of its own class.
        Q named = (Q) request.toBuilder().setField(field, tenant).build();
        return named;
    }

    ToolgateException failure(Status status, Metadata trailers) {
        if (channel.isShutdown()) {
            return ToolgateException.withoutDetails(
                    Status.Code.CANCELLED,
                    "the client was closed during the call",
                    status.getCause());
        }
        return ToolgateException.of(status, trailers, target);
    }

    void checkOpen() {
        if (isClosed()) {
            throw new IllegalStateException("this client is closed: build a new one");
        }
    }

    boolean isClosed() {
        return channel.isShutdown();
    }

    @Override
    public void close() {
        channel.shutdownNow();
        try {
            channel.awaitTermination(CLOSING.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public String toString() {
        return target + (tenant.isEmpty() ? "" : ", tenant " + tenant);
    }

    /**
     * Tries a lost connection again each second, and at once for a call. gRPC would wait for up to
     * two minutes, and fail calls until then: longer than a service takes to restart.
     */
    private void keepConnecting() {
        ConnectivityState state = channel.getState(false);
        if (state == ConnectivityState.TRANSIENT_FAILURE) {
            CompletableFuture.delayedExecutor(RECONNECT_EACH.toMillis(), TimeUnit.MILLISECONDS)
                    .execute(
                            () -> {
                                retryIfLost();
                                keepConnecting();
                            });
        } else if (state != ConnectivityState.SHUTDOWN) {
            channel.notifyWhenStateChanged(state, this::keepConnecting);
        }
    }

    /**
     * Whether there is no connection, since the last tries failed; then tries again, if that is not
     * under way.
     */
    private boolean retryIfLost() {
        if (channel.getState(false) != ConnectivityState.TRANSIENT_FAILURE) {
            return false;
        }
        long last = lastReconnect.get();
        long now = System.nanoTime();
        if (now - last >= RECONNECT_AT_MOST_EACH.toNanos()
                && lastReconnect.compareAndSet(last, now)) {
            channel.resetConnectBackoff();
        }
        return true;
    }

    /** How long a call waits for a connection that was lost: without one it would fail at once. */
    private static Duration pause(Duration timeout) {
        Duration part = timeout.dividedBy(4);
        return part.compareTo(CONNECTING) < 0 ? part : CONNECTING;
    }

    private CallOptions within(Duration timeout) {
        return options.withDeadlineAfter(timeout);
    }

    private <A> StreamObserver<A> completing(CompletableFuture<A> answer) {
        return new StreamObserver<>() {
            @Override
            public void onNext(A value) {
                answer.complete(value);
            }

            @Override
            public void onError(Throwable error) {
                answer.completeExceptionally(
                        failure(Status.fromThrowable(error), Status.trailersFromThrowable(error)));
            }

            @Override
            public void onCompleted() {}
        };
    }

    /**
     * UNAVAILABLE alone is retried: nothing else says that the service did no work. A watch sees to
     * itself.
     */
    private static Map<String, ?> serviceConfig() {
        Map<String, ?> retries =
                Map.of(
                        "maxAttempts",
                        3.0,
                        "initialBackoff",
                        "0.1s",
                        "maxBackoff",
                        "1s",
                        "backoffMultiplier",
                        2.0,
                        "retryableStatusCodes",
                        List.of("UNAVAILABLE"));
        Map<String, ?> watch =
                Map.of(
                        "name",
                        List.of(
                                Map.of(
                                        "service",
                                        "toolgate.v1.CatalogService",
                                        "method",
                                        "WatchCatalog")));
        Map<String, ?> all = Map.of("name", List.of(Map.of()), "retryPolicy", retries);
        return Map.of(
                "methodConfig", List.of(all, watch),
                "retryThrottling", Map.of("maxTokens", 10.0, "tokenRatio", 0.1),
                "loadBalancingConfig", List.of(Map.of("round_robin", Map.of())),
                "healthCheckConfig", Map.of("serviceName", ""));
    }
}
