/** The LangChain example against a service, and what becomes of an agent without one. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "@toolgate/client";
import { mcpDefinitions, modelFacing, toolgateMiddleware } from "@toolgate/client/langchain";
import { createAgent, ToolMessage } from "langchain";

import { notes, run, scripted } from "../../examples/langchain.js";
import { freshTenant, Service } from "./service.js";

const [SEARCH, FIND, DELETE] = ["toolgate_search_tools", "mcp__notes__find_notes", "mcp__notes__delete_note"];

test("a call is refused and corrected, a search loads a tool, and gated calls run", async () => {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const { messages, shown } = await run(client);
  assert.equal(messages.at(-1)?.text, "It is gone.");
  assert.deepEqual(shown, [
    [SEARCH, FIND],
    [SEARCH, FIND],
    [SEARCH, FIND, DELETE],
    [SEARCH, FIND, DELETE],
    [SEARCH, FIND, DELETE],
  ]);
  const results = messages.filter((message) => ToolMessage.isInstance(message));
  const [refused, found, searched, deleted] = results;
  assert.equal(refused?.status, "error");
  assert.match(refused.text, /"error":"arguments_invalid"/);
  assert.equal(found?.text, '["1"]');
  assert.deepEqual(JSON.parse(searched?.text ?? ""), { tools: [{ name: DELETE }] });
  assert.equal(deleted?.text, '{"deleted":true}');
});

test("of calls made at once, those that may run do, and the others are refused", async () => {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const tools = notes();
  await client.registerServer({ server: "notes", toolsListJson: mcpDefinitions(tools) });
  const managed = await modelFacing(tools, client.listTools({ server: "notes" }));
  const { model } = scripted(
    [
      [FIND, { text: "milk" }],
      [FIND, {}],
      ["mcp__notes__find_note", { text: "milk" }],
      [SEARCH, { query: "calendar" }],
    ],
    "Done.",
  );
  const agent = createAgent({ model, middleware: [toolgateMiddleware(client, managed)] });
  const { messages } = await agent.invoke({
    messages: [{ role: "user", content: "Find my notes about milk." }],
  });
  const results = messages.filter((message) => ToolMessage.isInstance(message));
  const byCall = new Map(results.map((result) => [result.tool_call_id, result.text]));
  assert.equal(byCall.get("call_1"), '["1"]');
  assert.match(byCall.get("call_2") ?? "", /arguments_invalid/);
  assert.match(byCall.get("call_3") ?? "", /unknown_tool/);
  assert.match(byCall.get("call_4") ?? "", /list_calendars/);
});

test("without a service, the model sees its tools and calls are refused", async () => {
  await using client = new Client("127.0.0.1:1");
  const faults: string[] = [];
  const tools = await modelFacing(
    notes(),
    notes().map(({ name }) => ({ name, modelName: `mcp__notes__${name}` }) as never),
  );
  const onFault = ({ code }: { code: string }) => faults.push(code);
  const { model, shown } = scripted([[FIND, { text: "milk" }]], "I could not look.");
  const agent = createAgent({ model, middleware: [toolgateMiddleware(client, tools, { onFault })] });
  const { messages } = await agent.invoke({ messages: [{ role: "user", content: "Hi." }] });
  assert.deepEqual(
    shown[0],
    tools.map(({ name }) => name),
  );
  assert.match(messages.find((message) => ToolMessage.isInstance(message))?.text ?? "", /gate_unavailable/);
  assert.equal(messages.at(-1)?.text, "I could not look.");
  assert.deepEqual(faults, ["UNAVAILABLE", "UNAVAILABLE"]);
});

test("tools under other names are refused at once, and so are tools that are not registered", async () => {
  const client = new Client();
  assert.throws(() => toolgateMiddleware(client, notes()), /not under model-facing names: find_notes/);
  await assert.rejects(modelFacing(notes(), []), /not registered: find_notes/);
  client.close();
});
