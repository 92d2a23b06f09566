/** The examples of README.md run as they stand there, and so does the example agent. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

import { run as runAgent } from "../../examples/agent.js";
import { Client } from "@toolgate/client";
import { repository, sdkFolder } from "../folders.js";
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
