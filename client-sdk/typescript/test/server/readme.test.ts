/** The examples of README.md run as they stand there, and so does the example agent. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

import Anthropic from "@anthropic-ai/sdk";

import { run as runAgent } from "../../examples/agent.js";
import { ask } from "../../examples/strategy.js";
import { calls, Client } from "@toolgate/client";
import { repository, sdkFolder } from "../folders.js";
import { added, anthropicApi, BETAS, defined } from "./anthropic-api.js";
import { DONE, PAGES, registeredCatalog, WANTED, WORDS } from "./catalog.js";
import { checkRequests } from "./prefix.js";
import { freshTenant, Service } from "./service.js";

const README = readFileSync(join(sdkFolder, "README.md"), "utf8");
const run = promisify(execFile);

/** The one example that has this text. */
function example(marker: string): string {
  const blocks = Array.from(README.matchAll(/```(?:js|ts)\n(.*?)```/gs), ([, code]) => code ?? "");
  const found = blocks.filter((code) => code.includes(marker));
  assert.equal(found.length, 1, `one example with ${marker}`);
  return found[0] ?? "";
}

test("the quickstart", async () => {
  await using service = await Service.get();
  const code = example('new Client("127.0.0.1:7070"')
    .replace("127.0.0.1:7070", service.target)
    .replace('"demo"', JSON.stringify(freshTenant()));
  const file = join(sdkFolder, "build", "quickstart.mjs");
  writeFileSync(file, code);
  const { stdout } = await run(process.execPath, [file], { cwd: repository });
  assert.match(stdout, /^-?[0-9]+ tokens saved\nsend it to slack as slack_post_message\n$/);
});

test("the conversation is the one of the example agent", () => {
  const source = readFileSync(join(sdkFolder, "examples", "conversation.ts"), "utf8");
  assert.equal(example("class Conversation"), source);
});

test("the loop is the one of the example", () => {
  const source = readFileSync(join(sdkFolder, "examples", "loop.ts"), "utf8");
  const dedented = source.replaceAll("\n    ", "\n");
  assert.ok(dedented.includes(example("await conversation.say(")));
});

test("the example agent", async () => {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const toolsList = await readFile(join(repository, "tests", "data", "servers", "slack.json"));
  const { said, ran, requests, messages } = await runAgent(client, toolsList);
  assert.equal(said, "I told the channel, and there are two people in it.");
  assert.deepEqual(ran, [
    'slack/slack_post_message {"channel_id":"C1","text":"I\'m ten minutes late."}',
    "slack/slack_get_users {}",
  ]);
  const shown = requests.map(({ tools }) => tools.map(({ name }) => name));
  assert.ok(shown.every(([first]) => first === "toolgate_search_tools"));
  assert.ok(shown[0]?.includes("mcp__slack__slack_post_message"));
  assert.ok(!shown[0]?.includes("mcp__slack__slack_get_users"));
  assert.ok(shown[3]?.includes("mcp__slack__slack_get_users"), "what was found is defined");
  assert.match(JSON.stringify(messages[2]), /arguments_invalid/);
  const listed = requests.filter(({ system }) => JSON.stringify(system).includes("mcp__slack__"));
  assert.deepEqual(listed, [], "the prompt lists nothing of the catalog");
  const { routeCalls, phase1Tokens } = await client.getUsage({});
  assert.deepEqual({ routeCalls, phase1Tokens }, { routeCalls: 5n, phase1Tokens: 0n });
});

test("the step with a strategy", async () => {
  const source = readFileSync(join(sdkFolder, "examples", "strategy.ts"), "utf8");
  assert.equal(example("function ask("), source);
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  await registeredCatalog(client);
  const api = anthropicApi([WANTED, { channel_id: "C1", text: "late" }], "Posted.", "None.");
  const anthropic = new Anthropic({ apiKey: "none", fetch: api.fetch });
  // Long enough for the provider's cache.
  const messages: Anthropic.Beta.BetaMessageParam[] = [
    { role: "user", content: "We spoke of many things. ".repeat(1_500) },
    { role: "assistant", content: "We did." },
  ];
  const held = { intent: "", handle: "", snapshot: "", ledger: "" };
  for (const said of [WORDS, PAGES]) {
    held.intent = said;
    messages.push({ role: "user", content: said });
    for (;;) {
      const { content } = await ask(client, anthropic, "claude-opus-5-5", messages, held);
      messages.push({ role: "assistant", content });
      const use = content.find((block) => block.type === "tool_use");
      if (use === undefined) break;
      const { verdicts } = await client.gate({
        activeSetHandle: held.handle,
        calls: [calls.of(use.name, use.input)],
      });
      assert.deepEqual([verdicts[0]?.allowed, verdicts[0]?.server], [true, "slack"]);
      messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: DONE }] });
    }
  }
  assert.equal(api.requests.length, 3);
  checkRequests(api.requests);
  const shown = api.requests.map((request) => [...defined(request), ...added(request)]);
  assert.ok(shown.every((names) => names.includes(WANTED)));
  assert.ok(shown[2]?.some((name) => String(name).startsWith("mcp__notion__")));
  assert.deepEqual(api.betas, Array(3).fill(BETAS));
});
