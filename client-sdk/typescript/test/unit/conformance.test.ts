/** Holds the client to what every client must do alike: the cases of client-sdk/conformance. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { fromJson, type JsonObject } from "@bufbuild/protobuf";

import { announce, answerOf, calls, Client, layout, SEARCH_TOOL, v1 } from "../../src/node.js";
import { type Case, cases } from "./cases.js";

for (const [file, one] of cases("prompt", "layout")) {
  test(`${file}: ${one.name}`, () => {
    const tools = one["tools"].map((tool: JsonObject) => fromJson(v1.ActiveToolSchema, tool));
    assert.deepEqual(
      {
        anthropic_system: layout.anthropicSystem(one["system"], one["summaries"]),
        openai_system: layout.openaiSystem(one["system"], one["summaries"]),
        user_message: layout.userMessage(one["content"], tools),
        responses_input: layout.responsesInput(one["content"], tools),
      },
      one["expect"],
    );
  });
}

for (const [file, one] of cases("prompt", "announce")) {
  test(`${file}: ${one.name}`, () => {
    const { added, ...said } = announce(one["searchable"], {
      loaded: one["loaded"],
      announced: one["announced"] ?? undefined,
    });
    assert.deepEqual({ ...said, added: [...added] }, one["expect"]);
  });
}

for (const [file, one] of cases("search", "tool")) {
  test(`${file}: ${one.name}`, () => {
    assert.deepEqual(
      {
        name: SEARCH_TOOL.name,
        model_name: SEARCH_TOOL.modelName,
        description: SEARCH_TOOL.description,
        input_schema: JSON.parse(SEARCH_TOOL.inputSchemaJson),
        annotations: JSON.parse(SEARCH_TOOL.annotationsJson),
        signature: SEARCH_TOOL.signature,
        signature_lossy: SEARCH_TOOL.signatureLossy,
        schema_tokens: SEARCH_TOOL.schemaTokens,
      },
      one["expect"],
    );
  });
}

for (const [file, one] of cases("search", "answer")) {
  test(`${file}: ${one.name}`, () => {
    const answer = answerOf(fromJson(v1.SearchToolsResponseSchema, one["found"] as JsonObject));
    assert.deepEqual([JSON.parse(answer.text), answer.failed], [one["expect"], false]);
  });
}

for (const [file, one] of cases("search", "mistake")) {
  test(`${file}: ${one.name}`, async () => {
    await using client = new Client("127.0.0.1:1"); // Nothing is sent.
    const call = calls.of(SEARCH_TOOL.modelName, asWritten(one));
    const answer = await client.answerSearch(call, { handle: "h" });
    assert.deepEqual(JSON.parse(answer.text), one["expect"]);
    assert.deepEqual([answer.failed, answer.handle, answer.found], [true, "h", undefined]);
  });
}

/** A count in tenths is whole once it is parsed; the case has it as it is written. */
function asWritten(one: Case): unknown {
  return one.name === "a count in tenths" ? '{"query": "x", "max_results": 5.0}' : one["arguments"];
}
