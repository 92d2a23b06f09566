/**
 * The active set in the shape that a provider's API takes: {@link dev.toolgate.render.Render}.
 * Rendering the same tools gives the same value, with the keys and numbers of schemas as they were
 * registered; {@link dev.toolgate.render.Loss} says what a provider's schemas can't. Gate still
 * holds calls to the registered schema.
 */
package dev.toolgate.render;
