/** Models' answers in the forms of the APIs. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { ANSWERS, messagesIn } from "../../src/answers.js";

test("a list of Gemini's chunks is one message", () => {
  const chunk = (...parts: object[]) => ({ candidates: [{ content: { role: "model", parts } }] });
  const call = { functionCall: { name: "find", args: { text: "milk" } }, thoughtSignature: "c2ln" };
  const chunks = [chunk({ text: "One " }), chunk({ text: "moment." }, call), { usageMetadata: {} }];
  const messages = messagesIn(ANSWERS.gemini, chunks);
  assert.deepEqual(messages, [{ role: "model", parts: [{ text: "One " }, { text: "moment." }, call] }]);
  assert.equal(ANSWERS.gemini.text(messages), "One moment.");
  assert.deepEqual(
    ANSWERS.gemini.calls(messages).map(({ tool }) => tool),
    ["find"],
  );
});

test("lists of other APIs are refused", () => {
  for (const api of ["anthropic", "openai_chat", "openai_responses"] as const) {
    assert.throws(() => messagesIn(ANSWERS[api], [{ content: [] }]), /not a list/);
  }
});
