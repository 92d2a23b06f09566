/**
 * Where summaries and definitions stand in a prompt, so that the provider's prompt cache holds:
 * {@link dev.toolgate.prompt.Layout} for the prompt's parts, {@link
 * dev.toolgate.prompt.Announcement} for telling the model what it can search for.
 */
package dev.toolgate.prompt;
