/** The forty messages to an agent of the OpenAI Agents SDK, whose requests are of Chat Completions. */
import {
  Agent,
  MCPServerStdio,
  MemorySession,
  OpenAIChatCompletionsModel,
  run,
  setTracingDisabled,
} from "@openai/agents";
import { ToolgateConversation } from "@toolgate/client/openai-agents";
import OpenAI from "openai";

import { answer, assistant, client, finish, next, options, said, servers } from "./talk.js";

interface Body {
  readonly tools?: object[];
  readonly messages: object[];
}

/** Answers a request by the script. */
function fetch(_: unknown, init?: RequestInit): Promise<Response> {
  const { tools = [], messages } = JSON.parse(init?.body as string) as Body;
  const call = next(tools, messages);
  const id = `call_${String(messages.length)}`;
  const calls = call === undefined ? [] : [{ id, name: call.name, arguments: JSON.stringify(call.args) }];
  const message = assistant(call === undefined ? answer : "", calls);
  const reason = call === undefined ? "stop" : "tool_calls";
  const choices = [{ index: 0, message, finish_reason: reason }];
  const said = { id: "chat", object: "chat.completion", created: 1, model: "gpt", choices };
  return Promise.resolve(Response.json(said));
}

setTracingDisabled(true);
const connected: Record<string, MCPServerStdio> = {};
for (const [name, [command, ...args]] of Object.entries(servers)) {
  connected[name] = new MCPServerStdio({ command, args });
  await connected[name].connect();
}
const toolgate = await ToolgateConversation.fromMcp(client, connected, options);
const openai = new OpenAI({ apiKey: "none", fetch });
const agent = new Agent({ name: "desk", model: new OpenAIChatCompletionsModel(openai, "gpt") });
const session = new MemorySession();
for (const text of said()) await run(toolgate.agent(agent), text, { session });
for (const server of Object.values(connected)) await server.close();
finish();
