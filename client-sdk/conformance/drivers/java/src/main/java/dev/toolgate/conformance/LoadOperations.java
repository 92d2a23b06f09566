package dev.toolgate.conformance;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.toolgate.ToolgateClient;
import dev.toolgate.ToolgateException;
import dev.toolgate.v1.GetServerRequest;
import dev.toolgate.v1.RouteRequest;
import dev.toolgate.v1.RouterServiceGrpc;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Many calls: at once, one after another, and with a client each. */
final class LoadOperations {
    private static final int RAW_SECONDS = 5;

    private LoadOperations() {}

    static void addTo(Map<String, Operations.Operation> operations, Clients clients) {
        operations.put("soak", (client, arguments) -> soak(clients.of(client), arguments));
        operations.put("open_close", LoadOperations::openClose);
        operations.put(
                "bench",
                (client, arguments) ->
                        Wire.flag(arguments, "raw")
                                ? raw(client, arguments)
                                : bench(clients.of(client), arguments));
    }

    private static JsonElement soak(ToolgateClient client, JsonObject arguments) throws Exception {
        RouteRequest request = route(arguments);
        int calls = arguments.get("calls").getAsInt();
        AtomicInteger left = new AtomicInteger(calls);
        Map<String, Integer> failed = new ConcurrentSkipListMap<>();
        Runnable work =
                () -> {
                    while (left.getAndDecrement() > 0) {
                        try {
                            client.route(request);
                        } catch (ToolgateException e) {
                            failed.merge(e.code().name(), 1, Integer::sum);
                        }
                    }
                };
        long start = System.nanoTime();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < arguments.get("concurrency").getAsInt(); i++) {
            threads.add(new Thread(work, "soak-" + i));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        JsonObject answer = new JsonObject();
        answer.addProperty("calls", calls);
        JsonObject told = new JsonObject();
        failed.forEach(told::addProperty);
        answer.add("failed", told);
        answer.addProperty("seconds", (System.nanoTime() - start) / 1e9);
        return answer;
    }

    private static JsonElement openClose(JsonObject settings, JsonObject arguments)
            throws Exception {
        GetServerRequest request =
                Wire.read(arguments.get("request"), GetServerRequest.newBuilder()).build();
        int times = arguments.get("times").getAsInt();
        for (int i = 0; i < times; i++) {
            try (ToolgateClient client = Clients.build(settings)) {
                client.getServer(request);
            }
        }
        JsonObject answer = new JsonObject();
        answer.addProperty("times", times);
        return answer;
    }

    private static JsonElement bench(ToolgateClient client, JsonObject arguments) throws Exception {
        RouteRequest request = route(arguments);
        return timed(arguments, () -> client.route(request));
    }

    private static JsonElement raw(JsonObject settings, JsonObject arguments) throws Exception {
        RouteRequest request = route(arguments);
        if (request.getTenant().isEmpty()) {
            request = request.toBuilder().setTenant(Wire.text(settings, "tenant")).build();
        }
        RouteRequest named = request;
        String target = Wire.text(settings, "target").replaceFirst("^http://", "");
        ManagedChannel channel =
                Grpc.newChannelBuilder(target, InsecureChannelCredentials.create()).build();
        try {
            RouterServiceGrpc.RouterServiceBlockingStub stub =
                    RouterServiceGrpc.newBlockingStub(channel);
            return timed(
                    arguments,
                    () -> stub.withDeadlineAfter(RAW_SECONDS, TimeUnit.SECONDS).route(named));
        } finally {
            channel.shutdownNow();
        }
    }

    private static JsonObject timed(JsonObject arguments, Runnable call) {
        JsonArray micros = new JsonArray();
        for (int i = 0; i < arguments.get("calls").getAsInt(); i++) {
            long start = System.nanoTime();
            call.run();
            micros.add((System.nanoTime() - start) / 1e3);
        }
        JsonObject answer = new JsonObject();
        answer.add("micros", micros);
        return answer;
    }

    private static RouteRequest route(JsonObject arguments) throws Exception {
        return Wire.read(arguments.get("request"), RouteRequest.newBuilder()).build();
    }
}
