/** The AI SDK's example against a service, and what becomes of a conversation without one. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "@toolgate/client";
import { ToolgateConversation } from "@toolgate/client/ai";
import { generateText, stepCountIs } from "ai";

import { notes, run, scripted } from "../../examples/ai-sdk.js";
import { freshTenant, Service } from "./service.js";

const [SEARCH, FIND, DELETE] = ["toolgate_search_tools", "mcp__notes__find_notes", "mcp__notes__delete_note"];

test("a call is refused and corrected, a search loads a tool, and gated calls run", async () => {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const { result, shown } = await run(client);
  assert.equal(result.text, "It is gone.");
  assert.deepEqual(shown[0], [SEARCH, FIND]);
  assert.deepEqual(shown[3], [SEARCH, FIND, DELETE]);
  const [refused, found, searched, deleted] = result.steps.map(({ content }) => content.at(-1));
  assert.ok(refused?.type === "tool-error");
  assert.match((refused.error as Error).message, /^{"error":"arguments_invalid"/);
  assert.ok(found?.type === "tool-result");
  assert.deepEqual(found.output, ["1"]);
  assert.ok(searched?.type === "tool-result");
  assert.deepEqual(JSON.parse(searched.output as string), { tools: [{ name: DELETE }] });
  assert.ok(deleted?.type === "tool-result");
  assert.deepEqual(deleted.output, { deleted: true });
});

test("without a service, the model sees its tools and calls are refused", async () => {
  await using client = new Client("127.0.0.1:1");
  const faults: string[] = [];
  const tools = Object.fromEntries(
    Object.entries(notes()).map(([name, tool]) => [`mcp__notes__${name}`, tool]),
  );
  const toolgate = new ToolgateConversation(client, tools, { onFault: ({ code }) => faults.push(code) });
  const model = scripted([[FIND, { text: "milk" }]], "I could not look.");
  const result = await generateText({
    model,
    prompt: "Hi.",
    stopWhen: stepCountIs(3),
    ...toolgate.settings(),
  });
  assert.deepEqual(
    model.doGenerateCalls[0]?.tools?.map(({ name }) => name).sort(),
    Object.keys(tools).sort(),
  );
  const failed = result.steps[0]?.content.at(-1);
  assert.ok(failed?.type === "tool-error");
  assert.match((failed.error as Error).message, /gate_unavailable/);
  assert.deepEqual(faults, ["UNAVAILABLE", "UNAVAILABLE"]);
});

test("tools under other names are refused at once", () => {
  assert.throws(
    () => new ToolgateConversation(new Client(), notes()),
    /not under model-facing names: find_notes/,
  );
});
