package dev.toolgate.history;

import com.google.gson.JsonElement;

/** One thing that an entry of a history says. */
sealed interface Event {
    /** The entry is the model's, or somebody else's. */
    record Spoke(boolean model) implements Event {}

    /** A tool's definition was loaded. */
    record Found(String tool) implements Event {}

    /**
     * The model called a tool. The key pairs it with its answer; an empty one: the answer comes
     * next.
     */
    record Called(String key, String tool) implements Event {}

    /** A call ended. The content is what it answered. */
    record Answered(String key, boolean failed, JsonElement content) implements Event {}
}
