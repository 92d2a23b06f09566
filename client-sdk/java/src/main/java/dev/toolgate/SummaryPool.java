package dev.toolgate;

import dev.toolgate.v1.SummaryEntry;
import dev.toolgate.v1.SummaryPoolDelta;
import java.util.LinkedHashMap;
import java.util.Map;

/** The summary pool that a client holds: summaries by model-facing name, in the pool's order. */
public final class SummaryPool {
    private SummaryPool() {}

    /**
     * The summaries after a change. A changed one moves to the end, so that a cached prefix before
     * it holds.
     *
     * @param change the pool whole, or what changed
     * @param held the summaries before, which are left alone
     * @return the summaries after it, in their order
     */
    public static Map<String, String> applyTo(SummaryPoolDelta change, Map<String, String> held) {
        Map<String, String> after = new LinkedHashMap<>(change.getFull() ? Map.of() : held);
        change.getRemovedList().forEach(after::remove);
        for (SummaryEntry entry : change.getAddedList()) {
            after.remove(entry.getModelName());
            after.put(entry.getModelName(), entry.getSummary());
        }
        return after;
    }
}
