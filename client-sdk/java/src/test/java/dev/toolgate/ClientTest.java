package dev.toolgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.rpc.BadRequest;
import dev.toolgate.v1.ApprovalRefusal;
import dev.toolgate.v1.ApproveToolsRequest;
import dev.toolgate.v1.ApproveToolsResponse;
import dev.toolgate.v1.ErrorReason;
import dev.toolgate.v1.ListServersRequest;
import dev.toolgate.v1.ListServersResponse;
import dev.toolgate.v1.McpServer;
import dev.toolgate.v1.RefusalCode;
import dev.toolgate.v1.RouteRequest;
import dev.toolgate.v1.RouteResponse;
import dev.toolgate.v1.SearchToolsRequest;
import dev.toolgate.v1.ToolApproval;
import dev.toolgate.v1.WatchCatalogRequest;
import io.grpc.Context;
import io.grpc.Status;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Requests, answers, failures and listings, over a fake service. */
class ClientTest {
    private static final RouteRequest REQUEST = RouteRequest.getDefaultInstance();

    private FakeServer server;
    private ToolgateClient client;

    @BeforeEach
    void open() throws IOException {
        server = new FakeServer();
        client =
                ToolgateClient.builder().target("http://" + server.target()).tenant("demo").build();
    }

    @AfterEach
    void close() {
        client.close();
        server.close();
    }

    @Test
    void theTenantIsPutWhereARequestNamesNone() {
        client.route(REQUEST);
        client.async().route(REQUEST.toBuilder().setTenant("other").build()).join();
        assertEquals("demo", ((RouteRequest) server.requests.get(0)).getTenant());
        assertEquals("other", ((RouteRequest) server.requests.get(1)).getTenant());
    }

    @Test
    void largeAnswersAreTaken() {
        String large = "x".repeat(5 * 1024 * 1024);
        server.answer(RouteResponse.newBuilder().setActiveSetHandle(large).build());
        assertEquals(large, client.route(REQUEST).getActiveSetHandle());
    }

    @Test
    void aFailureSaysAllThatTheServiceSaid() {
        BadRequest fields =
                BadRequest.newBuilder()
                        .addFieldViolations(
                                BadRequest.FieldViolation.newBuilder()
                                        .setField("a")
                                        .setDescription("is wrong"))
                        .build();
        server.fail(
                FakeServer.failure(
                        Status.Code.INVALID_ARGUMENT,
                        "INVALID_FIELD",
                        fields,
                        FakeServer.retryAfter(Duration.ofMillis(1500))));
        ToolgateException failed =
                assertThrows(ToolgateException.class, () -> client.route(REQUEST));
        assertEquals(Status.Code.INVALID_ARGUMENT, failed.code());
        assertEquals(ErrorReason.ERROR_REASON_INVALID_FIELD, failed.reason());
        assertEquals("it is so", failed.serviceMessage());
        assertEquals("INVALID_FIELD: it is so; a: is wrong", failed.getMessage());
        assertEquals(Map.of("limit", "3"), failed.metadata());
        assertEquals(
                List.of(new ToolgateException.FieldViolation("a", "is wrong")),
                failed.violations());
        assertEquals(Duration.ofMillis(1500), failed.retryAfter().orElseThrow());
    }

    @Test
    void aReasonOfALaterVersionIsKeptAsText() throws IOException {
        server.fail(FakeServer.failure(Status.Code.ABORTED, "FROM_THE_FUTURE"));
        ToolgateException failed =
                assertThrows(ToolgateException.class, () -> client.route(REQUEST));
        assertEquals(ErrorReason.ERROR_REASON_UNSPECIFIED, failed.reason());
        assertEquals("FROM_THE_FUTURE", failed.reasonName());
        try (ObjectOutputStream out = new ObjectOutputStream(new ByteArrayOutputStream())) {
            out.writeObject(failed);
        }
    }

    @Test
    void garbledDetailsBreakNothing() {
        byte[] unfinished = {10, 127, 1};
        for (byte[] garbled :
                new byte[][] {{}, {1, 2, 3}, unfinished, {(byte) 0xff, (byte) 0xff}}) {
            server.fail(FakeServer.failure(Status.Code.UNAVAILABLE, garbled));
            server.fail(FakeServer.failure(Status.Code.ABORTED, garbled));
            ToolgateException failed =
                    assertThrows(ToolgateException.class, () -> client.route(REQUEST));
            assertEquals(Status.Code.ABORTED, failed.code());
            assertEquals("it is so", failed.serviceMessage());
            assertEquals("", failed.reasonName());
        }
    }

    @Test
    void whenNobodyListensTheMessageSaysWhere() {
        try (ToolgateClient nobody = ToolgateClient.create("127.0.0.1:1")) {
            ToolgateException failed =
                    assertThrows(ToolgateException.class, () -> nobody.route(REQUEST));
            assertEquals(Status.Code.UNAVAILABLE, failed.code());
            assertTrue(
                    failed.getMessage().endsWith("is `toolgate serve` running at 127.0.0.1:1?"),
                    failed.getMessage());
        }
    }

    @Test
    void aCallEndsWithItsTimeout() {
        server.answers.add((request, observer) -> {});
        server.answers.add((request, observer) -> {});
        ToolgateClient hurried = client.withTimeout(Duration.ofMillis(200));
        ToolgateException failed =
                assertThrows(ToolgateException.class, () -> hurried.route(REQUEST));
        assertEquals(Status.Code.DEADLINE_EXCEEDED, failed.code());
        CompletionException later =
                assertThrows(
                        CompletionException.class, () -> hurried.async().route(REQUEST).join());
        assertInstanceOf(ToolgateException.class, later.getCause());
        assertThrows(
                IllegalArgumentException.class, () -> client.withTimeout(Duration.ofMillis(-1)));
    }

    @Test
    void cancellingAFutureCancelsItsCall() throws InterruptedException {
        CountDownLatch began = new CountDownLatch(1);
        CountDownLatch left = new CountDownLatch(1);
        server.answers.add(
                (request, observer) -> {
                    Context.current().addListener(context -> left.countDown(), Runnable::run);
                    began.countDown();
                });
        CompletableFuture<?> answer =
                client.async().withTimeout(Duration.ofMinutes(1)).route(REQUEST);
        assertTrue(began.await(60, TimeUnit.SECONDS));
        answer.cancel(true);
        assertTrue(left.await(60, TimeUnit.SECONDS));
    }

    @Test
    void aClosedClientSaysSo() throws Exception {
        server.answers.add((request, observer) -> {});
        CompletableFuture<?> underWay = client.async().route(REQUEST);
        while (server.requests.isEmpty()) {
            Thread.sleep(5);
        }
        client.close();
        CompletionException ended = assertThrows(CompletionException.class, underWay::join);
        assertEquals(
                "CANCELLED: the client was closed during the call", ended.getCause().getMessage());
        assertThrows(IllegalStateException.class, () -> client.route(REQUEST));
        assertThrows(IllegalStateException.class, () -> client.async().route(REQUEST));
        assertThrows(
                IllegalStateException.class,
                () -> client.watchCatalog(WatchCatalogRequest.getDefaultInstance()));
    }

    @Test
    void anApprovalCarriesWhatWasReviewedAndTellsWhatWasNotAccepted() {
        ApproveToolsRequest request =
                ApproveToolsRequest.newBuilder()
                        .setServer("sea")
                        .addApprovals(ToolApproval.newBuilder().setName("tides").setHash("0f"))
                        .addApprovals(ToolApproval.newBuilder().setName("moon").setHash("f0"))
                        .build();
        ApproveToolsResponse answer =
                ApproveToolsResponse.newBuilder()
                        .setCatalogRevision(7)
                        .addRefusals(
                                ApprovalRefusal.newBuilder()
                                        .setName("moon")
                                        .setCode(RefusalCode.REFUSAL_CODE_SCHEMA_CHANGED))
                        .build();
        server.fail(Status.UNAVAILABLE.asException());
        server.answer(answer);
        assertEquals(answer, client.approveTools(request));
        server.answer(answer);
        assertEquals(answer, client.async().approveTools(request).join());
        ApproveToolsRequest sent = request.toBuilder().setTenant("demo").build();
        assertEquals(List.of(sent, sent, sent), server.requests);
    }

    @Test
    void pagesAreFetchedAsTheyAreUsed() {
        answerPages();
        Iterator<McpServer> servers =
                client.allServers(ListServersRequest.getDefaultInstance()).iterator();
        assertEquals(0, server.requests.size());
        assertEquals("a", servers.next().getName());
        assertEquals("b", servers.next().getName());
        assertEquals(1, server.requests.size());
        assertEquals("c", servers.next().getName());
        assertFalse(servers.hasNext());
        assertEquals(3, server.requests.size());
        ListServersRequest last = (ListServersRequest) server.requests.get(2);
        assertEquals(100, last.getPageSize());
        assertEquals("t2", last.getPageToken());
        assertEquals("demo", last.getTenant());
    }

    @Test
    void aListingIsAStreamToo() {
        answerPages();
        ListServersRequest request = ListServersRequest.newBuilder().setPageSize(2).build();
        assertEquals(
                List.of("a", "b", "c"),
                client.allServers(request).stream().map(McpServer::getName).toList());
        assertEquals(2, ((ListServersRequest) server.requests.get(1)).getPageSize());
    }

    @Test
    void anAsynchronousListingHandsOverAllPages() {
        answerPages();
        List<String> names = new ArrayList<>();
        client.async()
                .forEachServer(
                        ListServersRequest.getDefaultInstance(), one -> names.add(one.getName()))
                .join();
        assertEquals(List.of("a", "b", "c"), names);
    }

    private void answerPages() {
        page("t1", "a", "b");
        page("t2");
        page("", "c");
    }

    private void page(String next, String... names) {
        ListServersResponse.Builder page = ListServersResponse.newBuilder().setNextPageToken(next);
        for (String name : names) {
            page.addServers(McpServer.newBuilder().setName(name));
        }
        server.answer(page.build());
    }

    @Test
    void whatTheModelWroteIsItsMistakeAndNotTheCallers() {
        SearchToolsRequest rest = SearchToolsRequest.newBuilder().setActiveSetHandle("h").build();
        for (String field : List.of("query", "state.scopes")) {
            BadRequest fields =
                    BadRequest.newBuilder()
                            .addFieldViolations(
                                    BadRequest.FieldViolation.newBuilder().setField(field))
                            .build();
            server.fail(FakeServer.failure(Status.Code.INVALID_ARGUMENT, "INVALID_FIELD", fields));
        }
        SearchAnswer mistaken =
                client.answerSearch(Calls.of(SearchTool.NAME, "{\"query\": \" \"}"), rest);
        assertTrue(mistaken.failed());
        assertEquals("{\"error\":\"arguments_invalid\",\"message\":\"it is so\"}", mistaken.text());
        CompletionException failed =
                assertThrows(
                        CompletionException.class,
                        () ->
                                client.async()
                                        .answerSearch(
                                                Calls.of(SearchTool.NAME, "{\"query\": \"x\"}"),
                                                rest)
                                        .join());
        assertInstanceOf(ToolgateException.class, failed.getCause());
    }

    @Test
    void theVersionIsThatOfTheProject() throws IOException {
        String pom = Files.readString(Path.of("pom.xml"));
        assertTrue(
                pom.contains(
                        "<artifactId>toolgate-client</artifactId>\n  <version>"
                                + Version.CURRENT
                                + "<"));
    }
}
