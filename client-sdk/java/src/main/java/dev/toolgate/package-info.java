/**
 * The client of Toolgate. {@link dev.toolgate.ToolgateClient} calls the service and waits for its
 * answers; {@link dev.toolgate.AsyncToolgateClient} gives futures. Requests and answers are the
 * messages of {@code dev.toolgate.v1}.
 *
 * <p>For a conversation, {@link dev.toolgate.ConversationState} gives its messages to the service,
 * which reads from them what was discovered and called, and answers route with a snapshot that
 * stands for them; {@link dev.toolgate.prompt} keeps prompt caches. None of them calls anything. A
 * request with {@code render} is answered with tools in the format of a provider's API; {@link
 * dev.toolgate.ProviderTools} reads them. JSON values are Gson's, which keep numbers and the order
 * of keys as they were written.
 */
package dev.toolgate;
