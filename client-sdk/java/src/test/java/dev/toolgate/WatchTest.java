package dev.toolgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.toolgate.v1.WatchCatalogRequest;
import dev.toolgate.v1.WatchCatalogResponse;
import io.grpc.Status;
import io.grpc.StatusException;
import java.io.IOException;
import java.time.Duration;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A watch outlives the streams that it is made of. */
@Timeout(120)
class WatchTest {
    private static final WatchCatalogRequest FROM_NOW = WatchCatalogRequest.getDefaultInstance();
    private static final Duration LONG = Duration.ofSeconds(60);

    /** Long enough for two calls of this process, however busy the machine is. */
    private static final Duration SHORT = Duration.ofSeconds(5);

    private FakeServer server;
    private ToolgateClient client;

    @BeforeEach
    void open() throws IOException {
        server = new FakeServer();
        client = ToolgateClient.builder().target(server.target()).tenant("demo").build();
    }

    @AfterEach
    void close() {
        client.close();
        server.close();
    }

    @Test
    void itGoesOnFromTheLastRevisionWhenItsStreamBreaks() {
        stream(Status.UNAVAILABLE.asException(), 5, 6);
        server.fail(Status.UNAVAILABLE.asException());
        server.fail(Status.UNAVAILABLE.asException());
        server.fail(Status.UNAVAILABLE.asException());
        stream(null, 7);
        stream(Status.PERMISSION_DENIED.asException(), 8);
        try (CatalogWatch watch = client.watchCatalog(FROM_NOW)) {
            for (long revision = 5; revision <= 8; revision++) {
                assertEquals(revision, watch.next().getCatalogRevision());
            }
            ToolgateException ended = assertThrows(ToolgateException.class, watch::hasNext);
            assertEquals(Status.Code.PERMISSION_DENIED, ended.code());
            assertThrows(ToolgateException.class, watch::next);
        }
        assertFalse(asked(0).hasSinceRevision());
        assertEquals("demo", asked(0).getTenant());
        assertEquals(6, asked(1).getSinceRevision());
        assertEquals(6, asked(4).getSinceRevision());
        assertEquals(7, asked(5).getSinceRevision());
        assertEquals(6, server.requests.size());
    }

    @Test
    void openingItIsTriedUntilItsTimeIsOver() {
        for (int i = 0; i < 100; i++) {
            server.fail(FakeServer.failure(Status.Code.UNAVAILABLE, "DRAINING"));
        }
        try (CatalogWatch watch = client.withTimeout(SHORT).watchCatalog(FROM_NOW)) {
            assertRefused(watch);
        }
        assertTrue(server.requests.size() > 1, server.requests.size() + " attempts");
        assertTrue(server.requests.size() < 15, server.requests.size() + " attempts");
    }

    @Test
    void whatIsLateAfterARefusalEndsWithTheRefusal() {
        server.fail(FakeServer.failure(Status.Code.UNAVAILABLE, "DRAINING"));
        server.answers.add((request, observer) -> {});
        try (CatalogWatch watch = client.withTimeout(SHORT).watchCatalog(FROM_NOW)) {
            assertRefused(watch);
        }
        assertEquals(2, server.requests.size());
    }

    private static void assertRefused(CatalogWatch watch) {
        ToolgateException failed = assertThrows(ToolgateException.class, watch::next);
        assertEquals(Status.Code.UNAVAILABLE, failed.code());
        assertEquals("DRAINING", failed.reasonName());
    }

    @Test
    void aStreamThatDoesNotOpenIsLate() {
        server.answers.add((request, observer) -> {});
        try (CatalogWatch watch =
                client.withTimeout(Duration.ofMillis(200)).watchCatalog(FROM_NOW)) {
            ToolgateException failed = assertThrows(ToolgateException.class, watch::next);
            assertEquals(Status.Code.DEADLINE_EXCEEDED, failed.code());
        }
    }

    @Test
    void aRefusalIsToldAsItIs() {
        server.fail(FakeServer.failure(Status.Code.INVALID_ARGUMENT, "INVALID_FIELD"));
        try (CatalogWatch watch = client.watchCatalog(FROM_NOW)) {
            assertEquals(
                    "INVALID_FIELD",
                    assertThrows(ToolgateException.class, watch::next).reasonName());
        }
    }

    @Test
    void closingItLetsWhoeverWaitsGo() throws Exception {
        server.answers.add((request, observer) -> observer.onNext(revision(1)));
        CatalogWatch watch = client.watchCatalog(FROM_NOW);
        assertEquals(1, watch.poll(LONG).orElseThrow().getCatalogRevision());
        assertEquals(Optional.empty(), watch.poll(Duration.ofMillis(50)));
        CompletableFuture<Boolean> waiting = CompletableFuture.supplyAsync(watch::hasNext);
        Thread.sleep(50);
        watch.close();
        assertFalse(waiting.get(60, TimeUnit.SECONDS));
        assertThrows(NoSuchElementException.class, watch::next);
        assertEquals(Optional.empty(), watch.poll(LONG));
    }

    @Test
    void closingTheClientEndsIt() {
        server.answers.add((request, observer) -> observer.onNext(revision(1)));
        try (CatalogWatch watch = client.watchCatalog(FROM_NOW)) {
            watch.next();
            client.close();
            assertEquals(
                    Status.Code.CANCELLED,
                    assertThrows(ToolgateException.class, watch::next).code());
        }
    }

    @Test
    void aSubscriberGetsAsManyAsItAsksFor() throws Exception {
        stream(null, 1, 2, 3);
        CompletableFuture<Long> first = new CompletableFuture<>();
        CompletableFuture<Long> second = new CompletableFuture<>();
        CompletableFuture<Flow.Subscription> subscribed = new CompletableFuture<>();
        client.async()
                .watchCatalog(FROM_NOW)
                .subscribe(
                        new Flow.Subscriber<>() {
                            @Override
                            public void onSubscribe(Flow.Subscription subscription) {
                                subscribed.complete(subscription);
                            }

                            @Override
                            public void onNext(WatchCatalogResponse change) {
                                (first.isDone() ? second : first)
                                        .complete(change.getCatalogRevision());
                            }

                            @Override
                            public void onError(Throwable error) {
                                first.completeExceptionally(error);
                            }

                            @Override
                            public void onComplete() {}
                        });
        Thread.sleep(200);
        assertFalse(first.isDone());
        subscribed.get().request(1);
        assertEquals(1, first.get(60, TimeUnit.SECONDS));
        Thread.sleep(100);
        assertFalse(second.isDone());
        subscribed.get().request(1);
        assertEquals(2, second.get(60, TimeUnit.SECONDS));
        subscribed.get().cancel();
        assertTrue(server.requests.size() == 1);
    }

    /** A stream that gives these revisions, and ends. */
    private void stream(StatusException error, long... revisions) {
        server.answers.add(
                (request, observer) -> {
                    for (long revision : revisions) {
                        observer.onNext(revision(revision));
                    }
                    if (error == null) {
                        observer.onCompleted();
                    } else {
                        observer.onError(error);
                    }
                });
    }

    private static WatchCatalogResponse revision(long revision) {
        return WatchCatalogResponse.newBuilder().setCatalogRevision(revision).build();
    }

    private WatchCatalogRequest asked(int index) {
        return (WatchCatalogRequest) server.requests.get(index);
    }
}
