package dev.toolgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.toolgate.v1.RegisterServerRequest;
import dev.toolgate.v1.RouteRequest;
import dev.toolgate.v1.RouteResponse;
import io.grpc.InsecureServerCredentials;
import io.grpc.Status;
import io.grpc.health.v1.HealthCheckResponse;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What is tried again, how often, and when. */
@Timeout(120)
class RetryTest {
    private static final RouteRequest REQUEST = RouteRequest.getDefaultInstance();

    private FakeServer server;
    private ToolgateClient client;

    @BeforeEach
    void open() throws IOException {
        server = new FakeServer();
        client = server.client();
    }

    @AfterEach
    void close() {
        client.close();
        server.close();
    }

    @Test
    void unavailableIsRetriedTwice() {
        server.fail(Status.UNAVAILABLE.asException());
        server.fail(Status.UNAVAILABLE.asException());
        server.answer(RouteResponse.newBuilder().setCatalogRevision(7).build());
        assertEquals(7, client.route(REQUEST).getCatalogRevision());
        assertEquals(3, server.requests.size());
    }

    @Test
    void itIsNotRetriedMoreOften() {
        for (int i = 0; i < 3; i++) {
            server.fail(FakeServer.failure(Status.Code.UNAVAILABLE, "DRAINING"));
        }
        ToolgateException failed =
                assertThrows(ToolgateException.class, () -> client.route(REQUEST));
        assertEquals("DRAINING", failed.reasonName());
        assertEquals(3, server.requests.size());
    }

    @Test
    void nothingElseIsRetried() {
        for (Status.Code code : Status.Code.values()) {
            if (code == Status.Code.OK || code == Status.Code.UNAVAILABLE) {
                continue;
            }
            server.requests.clear();
            server.fail(FakeServer.failure(code, "X", FakeServer.retryAfter(Duration.ofMillis(1))));
            ToolgateException failed =
                    assertThrows(ToolgateException.class, () -> client.route(REQUEST));
            assertEquals(code, failed.code());
            assertEquals(Optional.of(Duration.ofMillis(1)), failed.retryAfter());
            assertEquals(1, server.requests.size(), code.name());
        }
    }

    @Test
    void aRetryWaitsAsLongAsTheServiceAsks() {
        server.fail(
                FakeServer.failure(
                        Status.Code.UNAVAILABLE,
                        "DRAINING",
                        FakeServer.retryAfter(Duration.ofMillis(700))));
        long start = System.nanoTime();
        client.route(REQUEST);
        assertTrue(System.nanoTime() - start >= 700_000_000L);
        assertEquals(2, server.requests.size());
    }

    @Test
    void aRetryThatWouldComeTooLateIsNotAwaited() {
        server.fail(
                FakeServer.failure(
                        Status.Code.UNAVAILABLE,
                        "DRAINING",
                        FakeServer.retryAfter(Duration.ofMinutes(2))));
        ToolgateClient patient = client.withTimeout(Duration.ofMinutes(1));
        long start = System.nanoTime();
        ToolgateException failed =
                assertThrows(ToolgateException.class, () -> patient.route(REQUEST));
        assertEquals("DRAINING", failed.reasonName());
        assertEquals(Optional.of(Duration.ofMinutes(2)), failed.retryAfter());
        assertTrue(System.nanoTime() - start < 30_000_000_000L);
        assertEquals(1, server.requests.size());
    }

    @Test
    void aServiceThatKeepsFailingIsSpared() {
        for (int i = 0; i < 40; i++) {
            server.fail(Status.UNAVAILABLE.asException());
        }
        for (int i = 0; i < 6; i++) {
            assertThrows(ToolgateException.class, () -> client.route(REQUEST));
        }
        server.requests.clear();
        assertThrows(ToolgateException.class, () -> client.route(REQUEST));
        assertEquals(1, server.requests.size());
    }

    @Test
    void aServiceThatSaysThatItDoesNotServeIsNotCalled() throws InterruptedException {
        server.health.setStatus("", HealthCheckResponse.ServingStatus.NOT_SERVING);
        ToolgateException failed =
                assertThrows(ToolgateException.class, () -> client.route(REQUEST));
        assertEquals(Status.Code.UNAVAILABLE, failed.code());
        assertEquals(0, server.requests.size());
        server.health.setStatus("", HealthCheckResponse.ServingStatus.SERVING);
        eventuallyRoute();
    }

    @Test
    void aServiceThatComesBackIsFoundByTheNextCall() throws Exception {
        try (SocketChannel held = heldPort()) {
            int port = startOn(held);
            server.close();
            assertThrows(ToolgateException.class, () -> client.route(REQUEST));
            Thread.sleep(500);
            server = new FakeServer(port, InsecureServerCredentials.create());
            client.route(REQUEST);
        }
    }

    @Test
    void aServiceThatComesBackLateIsFoundSoon() throws Exception {
        try (SocketChannel held = heldPort()) {
            int port = startOn(held);
            server.close();
            long start = System.nanoTime();
            try (ServerSocket nobody = new ServerSocket(port)) {
                nobody.setSoTimeout(30_000);
                // gRPC alone would come for the eighth time after more than 40 seconds.
                for (int i = 0; i < 8; i++) {
                    nobody.accept().close();
                }
            }
            assertTrue(System.nanoTime() - start < 30_000_000_000L);
            server = new FakeServer(port, InsecureServerCredentials.create());
            eventuallyRoute();
        }
    }

    /** A port that is bound and not listened on: no other process is given it meanwhile. */
    private static SocketChannel heldPort() throws IOException {
        SocketChannel held = SocketChannel.open();
        held.setOption(StandardSocketOptions.SO_REUSEADDR, true);
        return held.bind(new InetSocketAddress("127.0.0.1", 0));
    }

    /** Serves a client on a held port, which it returns. */
    private int startOn(SocketChannel held) throws IOException {
        int port = ((InetSocketAddress) held.getLocalAddress()).getPort();
        close();
        server = new FakeServer(port, InsecureServerCredentials.create());
        client = server.client();
        client.route(REQUEST);
        return port;
    }

    /** Calls until it is answered, or for a minute. */
    private void eventuallyRoute() throws InterruptedException {
        long end = System.nanoTime() + 60_000_000_000L;
        while (true) {
            try {
                client.route(REQUEST);
                return;
            } catch (ToolgateException e) {
                if (e.code() != Status.Code.UNAVAILABLE || System.nanoTime() > end) {
                    throw e;
                }
            }
            Thread.sleep(20);
        }
    }

    @Test
    void aRetriedRegistrationHasTheSameIdAndAnotherOneAnother() {
        server.fail(Status.UNAVAILABLE.asException());
        RegisterServerRequest request = Registration.of("s", "[]").build();
        client.registerServer(request);
        client.async().registerServer(request).join();
        assertEquals(id(0), id(1));
        assertEquals(36, id(1).length());
        assertNotEquals(id(1), id(2));
        client.registerServer(request.toBuilder().setRequestId("mine").build());
        assertEquals("mine", id(3));
    }

    private String id(int request) {
        return ((RegisterServerRequest) server.requests.get(request)).getRequestId();
    }
}
