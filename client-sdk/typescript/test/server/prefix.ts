/** Checks what a provider's cache serves: the beginning that a request shares with the one before. */
import assert from "node:assert/strict";

/** Holds that each list begins with the one before, whatever marks the ends of cached prefixes. */
export function checkPrefix(lists: readonly (readonly unknown[])[]): void {
  const unmarked = lists.map((list) => list.map(withoutMarks));
  unmarked.slice(1).forEach((after, at) => {
    const before = unmarked[at] ?? [];
    assert.deepEqual(after.slice(0, before.length), before, "the cached prefix stays");
  });
}

/** Holds that requests have the same tools, and each the messages of the one before at its beginning. */
export function checkRequests(
  requests: readonly { readonly tools: unknown; readonly messages: readonly unknown[] }[],
): void {
  assert.ok(requests.length > 2);
  for (const { tools } of requests) assert.deepEqual(tools, requests[0]?.tools, "`tools` stay");
  checkPrefix(requests.map(({ messages }) => messages));
}

function withoutMarks(message: unknown): unknown {
  return JSON.parse(
    JSON.stringify(message, (key, value: unknown) => (key === "cache_control" ? undefined : value)),
  );
}
