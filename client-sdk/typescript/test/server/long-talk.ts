/** Twenty messages of people, and the tools of the two shipped MCP servers that they are about. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { Client } from "@toolgate/client";

import { repository } from "../folders.js";

const SERVERS = ["git", "mongodb"];
const MESSAGES = 20;
/** The default. */
const TOP_K = 10;
/** A schema of no arguments: every call of such a tool may run. */
export const EMPTY = { type: "object" as const, properties: {} };

/** Registers the tools without arguments; gives the names that the model is to see. */
export async function registered(client: Client): Promise<string[]> {
  const names: string[] = [];
  for (const server of SERVERS) {
    const { tools } = JSON.parse(data("servers", `${server}.json`)) as {
      tools: { name: string; description: string }[];
    };
    const listed = tools.map(({ name, description }) => ({ name, description, inputSchema: EMPTY }));
    await client.registerServer({ server, toolsListJson: { tools: listed } }, { timeoutMs: 60_000 });
    for await (const { modelName } of client.listTools({ server })) names.push(modelName);
  }
  return names;
}

/** Reads what people ask for, of these MCP servers only. */
export function messages(): string[] {
  const lines = data("intents", "people.jsonl").trim().split("\n");
  const asked = lines.map((line) => JSON.parse(line) as { query: string; relevant: string[] });
  const isOurs = (tool: string) => SERVERS.includes(tool.split("/")[0] ?? "");
  return asked
    .filter(({ relevant }) => relevant.length > 0 && relevant.every(isOurs))
    .map(({ query }) => query)
    .slice(0, MESSAGES);
}

function data(...path: string[]): string {
  return readFileSync(join(repository, "tests", "data", ...path), "utf8");
}

/** A model that calls, once a message, a tool of the catalog that it has not called yet. */
export class Caller {
  readonly called: string[] = [];
  /** The tools of the catalog that it saw, request by request. */
  readonly shown: string[][] = [];

  /** The tool to call now; none, to answer in words, once a call of this message has its result. */
  nextCall(shown: string[], isAnswered: boolean): string | undefined {
    const managed = shown.filter((name) => name.startsWith("mcp__"));
    this.shown.push(managed);
    const next = isAnswered ? undefined : managed.find((name) => !this.called.includes(name));
    if (next !== undefined) this.called.push(next);
    return next;
  }

  /** Holds that what the model saw stayed within `topK`, however many tools it called. */
  check(ran: string[]): void {
    assert.ok(ran.length > TOP_K, "more tools ran than a set holds");
    assert.deepEqual(ran, this.called, "every call ran");
    const most = Math.max(...this.shown.map(({ length }) => length));
    assert.ok(most <= TOP_K, `${String(most)} tools of the catalog are shown at once`);
    const sets = new Set(this.shown.map((names) => names.join()));
    assert.ok(sets.size > 1, "what is shown goes with the request");
  }
}
