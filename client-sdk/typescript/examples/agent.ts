/**
 * An agent's loop from end to end, with a model that follows a script instead of a provider's API: it registers an
 * MCP server, routes, renders, gates, and runs tools. `TOOLGATE_TARGET` says where the service is.
 *
 *     npm run build && npm run build:test && node build/examples/agent.js
 */
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

import { Client, isAuthenticated } from "@toolgate/client";

import { Conversation } from "./conversation.js";

const POST = "mcp__slack__slack_post_message";
const LATE = { channel_id: "C1", text: "I'm ten minutes late." };

/** A model's answer: a text, or a call of a tool. */
type Line = string | readonly [tool: string, input: object];

/** A request, as far as it is looked at. */
interface Sent {
  system: unknown;
  tools: { name: string }[];
}

/** Anthropic's Messages API with a script for a model; keeps the requests. */
export class ScriptedAnthropic {
  readonly messages = this;
  readonly requests: Sent[] = [];
  readonly #script: Line[];

  constructor(...script: Line[]) {
    this.#script = script;
  }

  create(request: object) {
    this.requests.push(request as Sent);
    const said = this.#script.shift();
    if (said === undefined) {
      throw new Error("the script is over");
    }
    const id = `toolu_${String(this.requests.length)}`;
    const block =
      typeof said === "string"
        ? ({ type: "text", text: said } as const)
        : ({ type: "tool_use", id, name: said[0], input: said[1] } as const);
    return Promise.resolve({ content: [block] });
  }
}

/** Registers an MCP server and talks about it; gives what was said, run and asked for. */
export async function run(client: Client, toolsList: Uint8Array) {
  await client.registerServer(
    {
      server: "slack",
      toolsListJson: toolsList,
      toolSettings: [{ name: "slack_post_message", precondition: isAuthenticated("chat:write") }],
    },
    { timeoutMs: 60_000 },
  );
  const model = new ScriptedAnthropic(
    // Refused, since the text is missing; then corrected.
    [POST, { channel_id: "C1" }],
    [POST, LATE],
    // Not among the tools of this turn: searched for, then called.
    ["toolgate_search_tools", { query: "select:mcp__slack__slack_get_users" }],
    ["mcp__slack__slack_get_users", {}],
    "I told the channel, and there are two people in it.",
  );
  const ran: string[] = [];
  const runTool = (server: string, name: string, args: object) => {
    ran.push(`${server}/${name} ${JSON.stringify(args)}`);
    return Promise.resolve("done");
  };
  const conversation = new Conversation(client, model, "claude-sonnet-4-5", runTool);
  const said = await conversation.say("Post in the team's channel that I'm ten minutes late.");
  return { said, ran, requests: model.requests, messages: conversation.messages };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const client = new Client(process.env["TOOLGATE_TARGET"], { tenant: "example", timeoutMs: 10_000 });
  const catalog = new URL("../../../../tests/data/servers/slack.json", import.meta.url);
  try {
    const { said, ran } = await run(client, await readFile(catalog));
    console.log([...ran, said].join("\n"));
  } finally {
    client.close();
  }
}
