package dev.toolgate.render;

import java.util.ArrayList;
import java.util.List;

/**
 * Where a schema stands within the registered one.
 *
 * @param at as a JSON Pointer
 * @param nesting levels from the root
 * @param followed the references that led here
 */
record Place(String at, int nesting, List<String> followed) {
    static final Place ROOT = new Place("", 0, List.of());

    /** The place of a schema within this one. */
    Place down(String part) {
        return new Place(Schemas.pointer(at, part), nesting + 1, followed);
    }

    /** The place of one of several: of a property by its name, of a branch by its number. */
    Place down(String key, Object which) {
        return new Place(Schemas.pointer(down(key).at, which.toString()), nesting + 1, followed);
    }

    /** The place that a reference leads to. */
    Place following(String reference) {
        List<String> led = new ArrayList<>(followed);
        led.add(reference);
        return new Place(reference.substring(1), nesting, List.copyOf(led));
    }

    /** This place, reached by the references that led to another. */
    Place ledAs(Place other) {
        return new Place(at, nesting, other.followed);
    }
}
