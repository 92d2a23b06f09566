/** Messages of people, and the tools of the two shipped MCP servers that they are about. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { Client } from "@toolgate/client";

import { repository } from "../folders.js";

const SERVERS = ["git", "mongodb"];
const CALL = "toolgate_call_tool";
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

/** Reads what people ask for, of these MCP servers only; some of it twice. */
export function messages(count: number): string[] {
  const lines = data("intents", "people.jsonl").trim().split("\n");
  const asked = lines.map((line) => JSON.parse(line) as { query: string; relevant: string[] });
  const isOurs = (tool: string) => SERVERS.includes(tool.split("/")[0] ?? "");
  const queries = asked
    .filter(({ relevant }) => relevant.length > 0 && relevant.every(isOurs))
    .map(({ query }) => query);
  // Some are asked again.
  return Array.from({ length: count }, (_, at) => queries[at % queries.length] ?? "");
}

function data(...path: string[]): string {
  return readFileSync(join(repository, "tests", "data", ...path), "utf8");
}

/** A model that calls, once a message, a tool of the catalog that it has not called yet. */
export class Caller {
  readonly called: string[] = [];
  /** The tools that are defined, request by request. */
  readonly #defined: string[][] = [];

  /**
   * The call to make now; none, to answer in words, once a call of this message has its result.
   *
   * @param last the request's last message, which may describe tools.
   */
  nextCall(
    defined: string[],
    last: unknown,
    isAnswered: boolean,
  ): { name: string; args: object } | undefined {
    this.#defined.push(defined);
    const isDescribed = defined.includes(CALL);
    const wanted = isDescribed ? describedIn(last) : defined.filter(isOfCatalog);
    const name = isAnswered ? undefined : wanted.find((one) => !this.called.includes(one));
    if (name === undefined) return undefined;
    this.called.push(name);
    return isDescribed ? { name: CALL, args: { name, arguments: {} } } : { name, args: {} };
  }

  /** Holds that what is defined stays within `topK`, however many tools are called, and goes with the messages. */
  checkCut(ran: string[]): void {
    this.#checkCalls(ran);
    const shown = this.#defined.map((names) => names.filter(isOfCatalog));
    const most = Math.max(...shown.map(({ length }) => length));
    assert.ok(most <= TOP_K, `${String(most)} tools of the catalog are shown at once`);
    assert.ok(new Set(shown.map((names) => names.join())).size > 1, "what is shown goes with the request");
  }

  /** Holds that the definitions stay from the time on that a provider's cache can keep them. */
  checkDefault(ran: string[]): void {
    this.#checkCalls(ran);
    const later = this.#defined.slice(this.#defined.length / 2);
    assert.equal(new Set(later.map((names) => names.join())).size, 1, "the definitions stay");
    assert.ok(later[0]?.includes(CALL), "further tools are described");
  }

  #checkCalls(ran: string[]): void {
    assert.ok(ran.length > TOP_K, "more tools ran than a set holds");
    assert.deepEqual(ran, this.called, "every call ran");
  }
}

function isOfCatalog(name: string): boolean {
  return name.startsWith("mcp__");
}

/** The names of the tools that a message describes. */
function describedIn(message: unknown): string[] {
  const names = JSON.stringify(message).matchAll(/\{\\*"name\\*":\\*"(mcp__[\w-]+)/g);
  return Array.from(names, ([, name = ""]) => name);
}
