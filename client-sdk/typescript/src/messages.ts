/** Texts of messages as the service reads them, and what they cost. Knows no framework. */
import type { Endpoint } from "./endpoint.js";

const INTENT_BYTES = 16 * 1024;
/** The service takes 1 MiB by default; the rest is for the snapshot. */
const CONVERSATION_BYTES = 768 * 1024;
/** UTF-16 units of one text. The service reads no longer one as an error. */
const TEXT_UNITS = 64 * 1024 + 1;
const OBSERVATION_WEIGHT = 0.5;
/** Of English text, about. */
const BYTES_A_TOKEN = 4;

/** An intent: what the user said, or less heavily what a tool answered since. */
export interface Intent {
  readonly text: string;
  readonly weight?: number;
}

/** An intent of a text, cut to what is worth embedding; none of a text that says nothing. */
export function intentOf(text: string, isObservation = false): Intent[] {
  const bytes = new TextEncoder().encode(text).subarray(0, INTENT_BYTES);
  // A character that was cut is left out.
  const cut = new TextDecoder().decode(bytes, { stream: true });
  const weight = isObservation ? { weight: OBSERVATION_WEIGHT } : {};
  return cut.trim() === "" ? [] : [{ text: cut, ...weight }];
}

/** A text of a message, cut to what the service is to read of it. */
export function cut(text: string): string {
  return text.length > TEXT_UNITS ? text.slice(0, TEXT_UNITS) : text;
}

/** A call's arguments as JSON text; none of them where they are too long to be read. */
export function argumentsOf(args: unknown): string {
  const written = JSON.stringify(args ?? {});
  return written.length > TEXT_UNITS ? "{}" : written;
}

/** The newest messages, as many as the service takes: a snapshot stands for the others. */
export function newest(entries: readonly unknown[]): unknown[] {
  const encoder = new TextEncoder();
  let left = CONVERSATION_BYTES;
  const tooMany = entries.findLastIndex((entry) => {
    left -= encoder.encode(JSON.stringify(entry)).length + 1;
    return left < 0;
  });
  return entries.slice(tooMany + 1);
}

/** Returns the endpoint with an estimate of what its system prompt costs, where there is any. */
export function withSystem(endpoint: Endpoint, texts: readonly string[]): Endpoint {
  const said = texts.filter((text) => text !== "");
  return said.length === 0 ? endpoint : { ...endpoint, systemTokens: estimatedTokens(said) };
}

/**
 * An estimate of what texts cost: a token for four bytes of UTF-8, and at least 1, since 0 would say that the tools stand
 * behind the messages.
 */
export function estimatedTokens(texts: readonly string[]): number {
  const encoder = new TextEncoder();
  const bytes = texts.reduce((sum, text) => sum + encoder.encode(text).length, 0);
  return Math.max(1, Math.floor(bytes / BYTES_A_TOKEN));
}
