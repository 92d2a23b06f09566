/**
 * Message histories: what they say about tools, and what must not be sent on. {@link
 * dev.toolgate.history.History#scan} reads what was discovered and called, for the agent's state;
 * {@link dev.toolgate.history.Stripped#of} gives the history that can be sent; {@link
 * dev.toolgate.history.History#compacted} puts a snapshot before what is left of a history that was
 * summarised.
 *
 * <p>Histories are JSON values: messages of Anthropic's Messages API, OpenAI's Chat Completions and
 * Responses APIs, and MCP (sampling messages and JSON-RPC), also mixed. What is unknown is passed
 * over; nothing here fails for what a message holds.
 */
package dev.toolgate.history;
