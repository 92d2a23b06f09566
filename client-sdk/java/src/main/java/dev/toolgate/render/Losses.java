package dev.toolgate.render;

import java.util.LinkedHashSet;
import java.util.Set;

/** Collects the losses of one tool. */
final class Losses {
    private final String tool;
    private final Set<Loss> found = new LinkedHashSet<>();

    Losses(String tool) {
        this.tool = tool;
    }

    /** Notes one; the same one again, where a schema is used twice, is noted once. */
    void add(String pointer, String keyword, String note) {
        found.add(new Loss(tool, pointer, keyword, note));
    }

    Set<Loss> found() {
        return found;
    }
}
