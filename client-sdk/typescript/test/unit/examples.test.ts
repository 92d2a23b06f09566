/** Holds that a test against a real server runs each example. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { sdkFolder } from "../folders.js";

/** Where each example runs: the file that imports it, and what it calls of it there. */
const RUNS: Readonly<Record<string, readonly [file: string, called: string]>> = {
  "agent.ts": ["test/server/readme.test.ts", "run"],
  "ai-mcp.ts": ["test/server/ai-mcp.test.ts", "run"],
  "ai-sdk.ts": ["test/server/ai.test.ts", "run"],
  "conversation.ts": ["examples/agent.ts", "Conversation"],
  "langchain-mcp.ts": ["test/server/langchain-mcp.test.ts", "add"],
  "langchain.ts": ["test/server/langchain.test.ts", "run"],
  "langgraph.ts": ["test/server/langgraph.test.ts", "add"],
  "loop.ts": ["test/server/conversation.test.ts", "run"],
  "openai-agents.ts": ["test/server/openai-agents.test.ts", "add"],
  "strategy.ts": ["test/server/readme.test.ts", "ask"],
};

const examples = readdirSync(join(sdkFolder, "examples"));

/** Returns the name that a source gives to what it imports of an example; undefined if it imports no such thing. */
function importedAs(source: string, example: string, called: string): string | undefined {
  const module = example.replace(/\.ts$/, ".js");
  const imports = Array.from(source.matchAll(/import \{([^}]*)\} from "([^"]+)"/g));
  const names = imports
    .filter(([, , from = ""]) => from.endsWith(`/${module}`))
    .flatMap(([, list = ""]) => list.split(",").map((name) => name.trim().split(" as ")));
  const found = names.find(([name]) => name === called);
  return found?.at(-1);
}

test("each example has a test that runs it", () => {
  assert.deepEqual(examples.sort(), Object.keys(RUNS).sort());
});

for (const [example, [file, called]] of Object.entries(RUNS)) {
  test(`${file} runs the example ${example}`, () => {
    const source = readFileSync(join(sdkFolder, file), "utf8");
    const name = importedAs(source, example, called);
    assert.ok(name !== undefined, `it does not import ${called}`);
    assert.match(source, new RegExp(`\\b(await|new) ${name}\\(`), `it does not call ${name}`);
  });
}
