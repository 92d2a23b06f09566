/** What the public packages share. Not part of the API: it may change with every version. */
package dev.toolgate.internal;
