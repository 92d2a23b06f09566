/** Tests the reading of calls through the envelope, the same for every integration. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { envelopeIn } from "../../src/envelope.js";
import { CALL_TOOL } from "../../src/prompting.js";

const CASES: readonly (readonly [written: string, read: unknown])[] = [
  ['{"name":"mcp__git__log","arguments":{"lines":1}}', { name: "mcp__git__log", args: { lines: 1 } }],
  ['{"name":"mcp__git__log","arguments":"{}"}', { name: "mcp__git__log", args: "{}" }],
  ['{"name":"mcp__git__log","arguments":null}', { name: "mcp__git__log", args: null }],
  ['{"name":"mcp__git__log"}', { name: "mcp__git__log", args: undefined }],
  ['{"name":7,"arguments":{}}', { name: undefined, args: {} }],
  ['{"arguments":{}}', { name: undefined, args: {} }],
  ['["mcp__git__log"]', undefined],
  ["{", undefined],
];

for (const [written, read] of CASES) {
  test(`an envelope is read: ${written}`, () => {
    assert.deepEqual(envelopeIn(CALL_TOOL, written), read);
  });
}

test("a call of another tool has no envelope", () => {
  assert.equal(envelopeIn("mcp__git__log", '{"name":"mcp__git__status"}'), undefined);
});
