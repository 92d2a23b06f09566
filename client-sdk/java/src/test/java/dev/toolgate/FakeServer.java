package dev.toolgate;

import com.google.protobuf.Any;
import com.google.protobuf.Message;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import dev.toolgate.v1.ApproveToolsRequest;
import dev.toolgate.v1.ApproveToolsResponse;
import dev.toolgate.v1.CatalogServiceGrpc;
import dev.toolgate.v1.ListServersRequest;
import dev.toolgate.v1.ListServersResponse;
import dev.toolgate.v1.RegisterServerRequest;
import dev.toolgate.v1.RegisterServerResponse;
import dev.toolgate.v1.RouteRequest;
import dev.toolgate.v1.RouteResponse;
import dev.toolgate.v1.RouterServiceGrpc;
import dev.toolgate.v1.SearchToolsRequest;
import dev.toolgate.v1.SearchToolsResponse;
import dev.toolgate.v1.WatchCatalogRequest;
import dev.toolgate.v1.WatchCatalogResponse;
import io.grpc.Grpc;
import io.grpc.InsecureServerCredentials;
import io.grpc.Metadata;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerCredentials;
import io.grpc.ServerInterceptor;
import io.grpc.Status;
import io.grpc.StatusException;
import io.grpc.protobuf.services.HealthStatusManager;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BiConsumer;

/** A service on a free port that answers as a test says, and remembers what it was asked. */
final class FakeServer implements AutoCloseable {
    static final Metadata.Key<byte[]> DETAILS =
            Metadata.Key.of("grpc-status-details-bin", Metadata.BINARY_BYTE_MARSHALLER);
    static final Metadata.Key<String> AUTHORIZATION =
            Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

    /** What was asked, in order. */
    final List<Message> requests = new CopyOnWriteArrayList<>();

    /** The headers of each call, but for health checks. */
    final List<Metadata> headers = new CopyOnWriteArrayList<>();

    /** How the next calls are answered; when there is none, with an empty message. */
    final Queue<BiConsumer<Message, StreamObserver<Message>>> answers =
            new ConcurrentLinkedQueue<>();

    /** What it says of its health: that it serves, unless told otherwise. */
    final HealthStatusManager health = new HealthStatusManager();

    private final Server server;

    FakeServer() throws IOException {
        this(InsecureServerCredentials.create());
    }

    FakeServer(ServerCredentials credentials) throws IOException {
        this(0, credentials);
    }

    FakeServer(int port, ServerCredentials credentials) throws IOException {
        server =
                Grpc.newServerBuilderForPort(port, credentials)
                        .addService(new Router())
                        .addService(new Catalog())
                        .addService(health.getHealthService())
                        .intercept(new HeaderKeeper())
                        .build()
                        .start();
    }

    String target() {
        return "127.0.0.1:" + server.getPort();
    }

    ToolgateClient client() {
        return ToolgateClient.create(target());
    }

    void answer(Message message) {
        answers.add(
                (request, observer) -> {
                    observer.onNext(message);
                    observer.onCompleted();
                });
    }

    void fail(StatusException error) {
        answers.add((request, observer) -> observer.onError(error));
    }

    static StatusException failure(Status.Code code, String reason, Message... more) {
        com.google.rpc.Status.Builder status =
                com.google.rpc.Status.newBuilder()
                        .setCode(code.value())
                        .setMessage("it is so")
                        .addDetails(
                                Any.pack(
                                        ErrorInfo.newBuilder()
                                                .setDomain("toolgate")
                                                .setReason(reason)
                                                .putMetadata("limit", "3")
                                                .build()));
        for (Message detail : more) {
            status.addDetails(Any.pack(detail));
        }
        return failure(code, status.build().toByteArray());
    }

    static StatusException failure(Status.Code code, byte[] details) {
        Metadata trailers = new Metadata();
        trailers.put(DETAILS, details);
        return code.toStatus().withDescription("it is so").asException(trailers);
    }

    static RetryInfo retryAfter(Duration delay) {
        return RetryInfo.newBuilder()
                .setRetryDelay(
                        com.google.protobuf.Duration.newBuilder()
                                .setSeconds(delay.toSeconds())
                                .setNanos(delay.toNanosPart()))
                .build();
    }

    @Override
    public void close() {
        server.shutdownNow();
        try {
            server.awaitTermination();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @SuppressWarnings("unchecked") // A test answers a call with messages of its type.
    private <A extends Message> void take(
            Message request, StreamObserver<A> observer, A otherwise) {
        requests.add(request);
        BiConsumer<Message, StreamObserver<Message>> answer = answers.poll();
        if (answer != null) {
            answer.accept(request, (StreamObserver<Message>) observer);
            return;
        }
        observer.onNext(otherwise);
        observer.onCompleted();
    }

    private final class Router extends RouterServiceGrpc.RouterServiceImplBase {
        @Override
        public void route(RouteRequest request, StreamObserver<RouteResponse> observer) {
            take(request, observer, RouteResponse.getDefaultInstance());
        }

        @Override
        public void searchTools(
                SearchToolsRequest request, StreamObserver<SearchToolsResponse> observer) {
            take(request, observer, SearchToolsResponse.getDefaultInstance());
        }
    }

    private final class Catalog extends CatalogServiceGrpc.CatalogServiceImplBase {
        @Override
        public void registerServer(
                RegisterServerRequest request, StreamObserver<RegisterServerResponse> observer) {
            take(request, observer, RegisterServerResponse.getDefaultInstance());
        }

        @Override
        public void approveTools(
                ApproveToolsRequest request, StreamObserver<ApproveToolsResponse> observer) {
            take(request, observer, ApproveToolsResponse.getDefaultInstance());
        }

        @Override
        public void listServers(
                ListServersRequest request, StreamObserver<ListServersResponse> observer) {
            take(request, observer, ListServersResponse.getDefaultInstance());
        }

        @Override
        public void watchCatalog(
                WatchCatalogRequest request, StreamObserver<WatchCatalogResponse> observer) {
            take(request, observer, WatchCatalogResponse.getDefaultInstance());
        }
    }

    private final class HeaderKeeper implements ServerInterceptor {
        @Override
        public <Q, A> ServerCall.Listener<Q> interceptCall(
                ServerCall<Q, A> call, Metadata sent, ServerCallHandler<Q, A> next) {
            if (call.getMethodDescriptor().getFullMethodName().startsWith("toolgate.")) {
                headers.add(sent);
            }
            return next.startCall(call, sent);
        }
    }
}
