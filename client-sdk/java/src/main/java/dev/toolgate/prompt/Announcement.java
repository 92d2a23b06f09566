package dev.toolgate.prompt;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Telling the model what it can search for: the whole list once, then only what changed.
 * Announcements go at the end of the history and stay there, so that the cached prefix before them
 * holds. After a compaction, when they are gone, begin again.
 *
 * @param full true when this is the whole list
 * @param added summaries, by name and in their order, of what can be searched for and was not
 *     announced; an empty one stands for the name alone
 * @param removed names that were announced and are neither searchable nor loaded now, in their
 *     order
 * @param announced every name that the model has been told of and that is still there; for the next
 *     turn
 */
public record Announcement(
        boolean full, Map<String, String> added, List<String> removed, List<String> announced) {
    /**
     * What changed since the last announcement.
     *
     * @param searchable the tools that a search can find: summaries by name, in their order
     * @param loaded names of those whose definitions the model has: they need no search, and are
     *     not reported as removed
     * @param announced the last announcement's; null when the model has been told nothing
     * @return what to tell
     */
    public static Announcement of(
            Map<String, String> searchable,
            Collection<String> loaded,
            Collection<String> announced) {
        Set<String> known = new LinkedHashSet<>(announced == null ? List.of() : announced);
        List<String> kept = new ArrayList<>();
        List<String> removed = new ArrayList<>();
        for (String name : known) {
            (searchable.containsKey(name) || loaded.contains(name) ? kept : removed).add(name);
        }
        Map<String, String> added = new LinkedHashMap<>(searchable);
        added.keySet().removeAll(known);
        added.keySet().removeAll(Set.copyOf(loaded));
        kept.addAll(added.keySet());
        return new Announcement(
                announced == null,
                Collections.unmodifiableMap(added),
                List.copyOf(removed),
                List.copyOf(kept));
    }

    /**
     * The text to append to the history.
     *
     * @return the text; empty when there is nothing to tell
     */
    public String text() {
        List<String> lines = added.entrySet().stream().map(Announcement::line).toList();
        String tag = full ? "searchable-tools" : "searchable-tools-added";
        return Stream.of(tagged(tag, lines), tagged("searchable-tools-removed", removed))
                .filter(part -> !part.isEmpty())
                .collect(Collectors.joining("\n"));
    }

    private static String tagged(String tag, List<String> lines) {
        return lines.isEmpty()
                ? ""
                : "<" + tag + ">\n" + String.join("\n", lines) + "\n</" + tag + ">";
    }

    private static String line(Map.Entry<String, String> added) {
        String summary = Texts.oneLine(added.getValue());
        return summary.isEmpty() ? added.getKey() : added.getKey() + ": " + summary;
    }
}
