package dev.toolgate.render;

/**
 * Something that a registered tool says and the rendered one can't.
 *
 * @param tool the tool's model-facing name
 * @param pointer where, as a JSON Pointer into the registered {@code inputSchema}; empty for the
 *     whole
 * @param keyword the keyword at fault; {@code name} for the tool's own name
 * @param note what became of it
 */
public record Loss(String tool, String pointer, String keyword, String note) {}
