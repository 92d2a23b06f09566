/** Requests that strategies make, held to the types of the providers' own packages. They are those of the service's tests. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { repository } from "../folders.js";
import { mistakesIn, type Typed, type TypedApi } from "../provider-types.js";

interface Cases {
  readonly definitions: Readonly<Record<string, unknown>>;
  readonly cases: readonly {
    readonly name: string;
    readonly turns: readonly {
      readonly expect: { tools: unknown[]; messages: unknown[]; betas: string[] };
    }[];
  }[];
}

/** Each request that a case expects, with its tools written out. */
function requests(api: TypedApi): Typed[] {
  const path = join(repository, "server", "llm", "tests", "cases", "strategy", `${api}.json`);
  const { definitions, cases } = JSON.parse(readFileSync(path, "utf8")) as Cases;
  return cases.flatMap(({ name, turns }) =>
    turns.map(({ expect: { tools, messages, betas } }, at) => ({
      name: `${name}, turn ${String(at)}`,
      tools: tools.map((tool) => (typeof tool === "string" ? definitions[tool] : tool)),
      messages,
      betas,
    })),
  );
}

for (const api of ["anthropic", "openai_chat", "openai_responses", "gemini"] as const) {
  test(`every request of ${api} is one that the provider's types take, and a changed one is not`, () => {
    const all = requests(api);
    assert.ok(all.length > 20);
    const [first] = all;
    assert.ok(first !== undefined);
    const strange = (values: readonly unknown[]) =>
      values.map((value) => ({ ...(value as object), stranger: true }));
    const tools = { ...first, name: "tools", tools: strange(first.tools) };
    const messages = { ...first, name: "messages", messages: strange(first.messages) };
    const betas = { ...first, name: "betas", betas: ["inline-tools-2026-09-51"] };
    const mistaken = mistakesIn(api, [...all, tools, messages, betas]).map(([name]) => name);
    assert.deepEqual([...new Set(mistaken)], ["tools", "messages", "betas"]);
  });
}

test("betas are named where Anthropic's tools are added amid the messages, and for no other API", () => {
  const added = requests("anthropic").filter(({ messages }) =>
    JSON.stringify(messages).includes('"tool_addition"'),
  );
  assert.ok(added.length > 0, "some case adds tools");
  for (const { name, betas } of added) assert.ok(betas?.includes("inline-tools-2026-09-15"), name);
  for (const api of ["openai_chat", "openai_responses", "gemini"] as const) {
    for (const { name, betas } of requests(api)) assert.deepEqual(betas, [], name);
  }
});
