package dev.toolgate.history;

/**
 * One thing that was taken out of a history.
 *
 * @param message index of the entry in the history that was given
 * @param kind its type, such as {@code tool_reference}
 * @param name the tool that it named; of a search, the search tool; empty when it named none
 * @param reason why it was taken out
 */
public record Removed(int message, String kind, String name, Reason reason) {
    /** Why something was taken out. */
    public enum Reason {
        /** The request defines no such tool. */
        VANISHED,
        /** The model, or what stands before it, can't take references. */
        UNSUPPORTED
    }
}
