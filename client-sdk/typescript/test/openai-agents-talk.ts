/** The forty messages to an agent of the OpenAI Agents SDK, over Chat Completions or, if that API is named, Responses. */
import {
  Agent,
  MCPServerStdio,
  MemorySession,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run,
  setTracingDisabled,
} from "@openai/agents";
import { ToolgateConversation } from "@toolgate/client/openai-agents";
import OpenAI from "openai";

import { api, client, fetch, finish, model as name, options, said, servers } from "./talk.js";

setTracingDisabled(true);
const connected: Record<string, MCPServerStdio> = {};
for (const [name, [command, ...args]] of Object.entries(servers)) {
  connected[name] = new MCPServerStdio({ command, args });
  await connected[name].connect();
}
const toolgate = await ToolgateConversation.fromMcp(client, connected, options);
const openai = new OpenAI({ apiKey: "none", fetch });
const model =
  api === "openai_responses"
    ? new OpenAIResponsesModel(openai, name)
    : new OpenAIChatCompletionsModel(openai, "gpt");
const agent = new Agent({ name: "desk", model });
const session = new MemorySession();
for (const text of said()) await run(toolgate.agent(agent), text, { session });
for (const server of Object.values(connected)) await server.close();
finish();
