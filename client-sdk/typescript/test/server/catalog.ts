/** A catalog of some size: tools of shipped MCP servers, and people's words for them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { Client } from "@toolgate/client";

import { repository } from "../folders.js";

const SERVERS = ["slack", "notion", "git"];

/** Tools of the catalog as their servers list them. */
export interface Listed {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** Asks for `WANTED`. */
export const WORDS = "Post in the team's Slack channel that I'll be ten minutes late.";
export const WANTED = "mcp__slack__slack_post_message";
/** Answers `WANTED`. */
export const DONE = "Posted the message to the Slack channel.";
/** Asks for another tool, at a length that leans on no message before. */
export const PAGES =
  "Search the pages of our Notion workspace for all that somebody wrote about the holidays of next summer.";

/** Registers the servers; gives their tools by the names that the model is to see. */
export async function registeredCatalog(client: Client): Promise<Map<string, Listed>> {
  const tools = new Map<string, Listed>();
  for (const server of SERVERS) {
    const path = join(repository, "tests", "data", "servers", `${server}.json`);
    const listed = JSON.parse(readFileSync(path, "utf8")) as { tools: Listed[] };
    await client.registerServer({ server, toolsListJson: listed }, { timeoutMs: 60_000 });
    for await (const { name, modelName } of client.listTools({ server })) {
      const tool = listed.tools.find((one) => one.name === name);
      if (tool !== undefined) tools.set(modelName, tool);
    }
  }
  return tools;
}
