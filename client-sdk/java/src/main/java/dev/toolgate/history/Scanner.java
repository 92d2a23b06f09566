package dev.toolgate.history;

import com.google.gson.JsonElement;
import dev.toolgate.SearchTool;
import dev.toolgate.v1.CallStatus;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.function.ToIntFunction;

/** Folds the events of a history into what it says. */
final class Scanner {
    // The state is at most 64 KiB on the wire; the rest is for scopes, milestones and attributes.
    private static final int DISCOVERED_BYTES = 24 * 1024;
    private static final int CALLS_BYTES = 24 * 1024;
    private static final int CALL_OVERHEAD = 16;
    private static final int NAME_OVERHEAD = 4;

    private final Set<String> found = new LinkedHashSet<>();
    private final List<SeenCall> calls = new ArrayList<>();

    /** Calls whose answers may come, by identifier. */
    private final Map<String, Integer> open = new HashMap<>();

    /** Calls without an identifier whose answers have not come, oldest first. */
    private final Queue<Integer> anonymous = new ArrayDeque<>();

    /** Calls of a snapshot that the messages have not repeated, by identifier. */
    private final Map<String, Integer> restored = new HashMap<>();

    private long nextTurn;
    private long turns;
    private boolean modelSpeaks;

    /** Takes in what a snapshot holds. */
    void restore(JsonElement entry) {
        History snapshot = Snapshots.read(entry);
        found.addAll(snapshot.discovered());
        Set<String> known = new HashSet<>();
        calls.forEach(call -> known.add(call.id()));
        for (SeenCall call : snapshot.calls()) {
            if (!call.id().isEmpty()) {
                if (known.contains(call.id())) {
                    continue;
                }
                restored.put(call.id(), calls.size());
                open.put(call.id(), calls.size());
            }
            calls.add(call);
        }
        turns = Math.max(turns, snapshot.turns());
        nextTurn = turns;
        modelSpeaks = false;
    }

    void take(Event event) {
        if (event instanceof Event.Spoke spoke) {
            speak(spoke.model());
        } else if (event instanceof Event.Found loaded) {
            found.add(loaded.tool());
        } else if (event instanceof Event.Called called) {
            call(called.key(), called.tool());
        } else if (event instanceof Event.Answered answered) {
            answer(answered);
        }
    }

    History finish() {
        List<String> newest = new ArrayList<>(found);
        Collections.reverse(newest);
        List<String> kept = fitting(newest, name -> bytes(name) + NAME_OVERHEAD, DISCOVERED_BYTES);
        Collections.reverse(kept);
        return new History(List.copyOf(kept), newestCalls(), turns);
    }

    private void speak(boolean model) {
        if (model && !modelSpeaks) {
            beginTurn(nextTurn + 1);
        }
        modelSpeaks = model;
    }

    private void beginTurn(long next) {
        nextTurn = next;
        turns = Math.max(turns, nextTurn);
    }

    private void call(String id, String tool) {
        Integer known = restored.get(id);
        if (known != null && calls.get(known).tool().equals(tool)) {
            // This turn was counted before the compaction.
            restored.remove(id);
            beginTurn(calls.get(known).turn() + 1);
            return;
        }
        Integer awaited = open.get(id);
        // Some providers use an identifier again: with another tool, it is another call.
        if (awaited != null && calls.get(awaited).tool().equals(tool)) {
            return;
        }
        if (id.isEmpty()) {
            anonymous.add(calls.size());
        } else {
            open.put(id, calls.size());
        }
        calls.add(
                new SeenCall(
                        tool, CallStatus.CALL_STATUS_UNSPECIFIED, Math.max(0, nextTurn - 1), id));
    }

    private void answer(Event.Answered answered) {
        Integer index = answered.key().isEmpty() ? anonymous.poll() : open.remove(answered.key());
        if (index == null) {
            return;
        }
        SeenCall call = calls.get(index);
        if (answered.failed()) {
            calls.set(index, call.ended(CallStatus.CALL_STATUS_FAILED));
            return;
        }
        calls.set(index, call.ended(CallStatus.CALL_STATUS_SUCCEEDED));
        // The search is no tool of the catalog: its answer says what it loaded.
        if (call.tool().equals(SearchTool.NAME)) {
            found.addAll(Reading.foundTools(answered.content()));
        } else {
            found.add(call.tool());
        }
    }

    /** The newest calls, but the last success of each tool first: preconditions ask for it. */
    private List<SeenCall> newestCalls() {
        Set<String> succeeded = new HashSet<>();
        List<Integer> order = new ArrayList<>();
        List<Integer> others = new ArrayList<>();
        for (int index = calls.size() - 1; index >= 0; index--) {
            SeenCall call = calls.get(index);
            boolean isLastSuccess =
                    call.status() == CallStatus.CALL_STATUS_SUCCEEDED && succeeded.add(call.tool());
            (isLastSuccess ? order : others).add(index);
        }
        order.addAll(others);
        List<Integer> kept =
                fitting(
                        order,
                        index -> bytes(calls.get(index).tool()) + CALL_OVERHEAD,
                        CALLS_BYTES);
        Collections.sort(kept);
        return kept.stream().map(calls::get).toList();
    }

    /** The items that fit the budget of bytes, taken in order until one does not fit. */
    private static <T> List<T> fitting(List<T> items, ToIntFunction<T> size, int budget) {
        List<T> taken = new ArrayList<>();
        int left = budget;
        for (T item : items) {
            left -= size.applyAsInt(item);
            if (left < 0) {
                break;
            }
            taken.add(item);
        }
        return taken;
    }

    private static int bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8).length;
    }
}
