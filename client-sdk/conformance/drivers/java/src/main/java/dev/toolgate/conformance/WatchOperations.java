package dev.toolgate.conformance;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import dev.toolgate.CatalogWatch;
import dev.toolgate.ToolgateException;
import dev.toolgate.v1.WatchCatalogRequest;
import dev.toolgate.v1.WatchCatalogResponse;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Watches, each collected by a thread of its own. */
final class WatchOperations implements AutoCloseable {
    private final Clients clients;
    private final Map<Integer, Collected> watches = new HashMap<>();
    private int next = 1;

    WatchOperations(Clients clients) {
        this.clients = clients;
    }

    void addTo(Map<String, Operations.Operation> operations) {
        operations.put("watch_start", this::start);
        operations.put("watch_take", this::take);
        operations.put("watch_stop", this::stop);
    }

    private JsonElement start(JsonObject client, JsonObject arguments) throws Exception {
        WatchCatalogRequest request =
                Wire.read(arguments.get("request"), WatchCatalogRequest.newBuilder()).build();
        Collected collected = new Collected(clients.of(client).watchCatalog(request));
        Thread thread = new Thread(collected, "watch-" + next);
        thread.setDaemon(true);
        thread.start();
        watches.put(next, collected);
        JsonObject answer = new JsonObject();
        answer.addProperty("watch", next++);
        return answer;
    }

    private JsonElement take(JsonObject client, JsonObject arguments) throws Exception {
        long millis = Wire.seconds(arguments.get("timeout")).toMillis();
        return watch(arguments).take(arguments.get("count").getAsInt(), millis);
    }

    private JsonElement stop(JsonObject client, JsonObject arguments) {
        watch(arguments).watch.close();
        watches.remove(arguments.get("watch").getAsInt());
        return new JsonObject();
    }

    private Collected watch(JsonObject arguments) {
        JsonPrimitive id = arguments.getAsJsonPrimitive("watch");
        Collected found = watches.get(id.getAsInt());
        if (found == null) {
            throw new NullPointerException("no watch " + id);
        }
        return found;
    }

    @Override
    public void close() {
        watches.values().forEach(collected -> collected.watch.close());
    }

    /** What a watch gave and nobody took yet. */
    private static final class Collected implements Runnable {
        private final CatalogWatch watch;
        private final List<WatchCatalogResponse> changes = new ArrayList<>();
        private ToolgateException failure;

        Collected(CatalogWatch watch) {
            this.watch = watch;
        }

        @Override
        public void run() {
            try {
                while (watch.hasNext()) {
                    add(watch.next());
                }
            } catch (ToolgateException e) {
                fail(e);
            }
        }

        private synchronized void add(WatchCatalogResponse change) {
            changes.add(change);
            notifyAll();
        }

        private synchronized void fail(ToolgateException error) {
            failure = error;
            notifyAll();
        }

        synchronized JsonObject take(int count, long millis) throws Exception {
            long end = System.nanoTime() + millis * 1_000_000;
            for (long left = millis; changes.size() < count && failure == null && left > 0; ) {
                wait(left);
                left = (end - System.nanoTime()) / 1_000_000;
            }
            List<WatchCatalogResponse> taken = changes.subList(0, Math.min(count, changes.size()));
            JsonArray events = Wire.writeAll(taken);
            taken.clear();
            JsonObject answer = new JsonObject();
            answer.add("events", events);
            if (failure != null && events.size() < count) {
                answer.add("error", Failures.ofCall(failure));
            }
            return answer;
        }
    }
}
