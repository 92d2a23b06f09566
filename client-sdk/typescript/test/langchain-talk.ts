/**
 * The forty messages to an agent of LangChain.js. Reads what they are from standard input, and writes the model's requests
 * as JSON; `tests/e2e/langchain_js_talk.py` runs it.
 */
import { readFileSync } from "node:fs";

import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import { MemorySaver } from "@langchain/langgraph";
import { Client as McpClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Client, v1 } from "@toolgate/client";
import { fromMcp, type FromMcpOptions } from "@toolgate/client/langchain";
import { createAgent, fakeModel } from "langchain";

interface Asked {
  readonly target: string;
  readonly tenant: string;
  readonly strategy?: "auto" | "cut" | "envelope";
  /** Whether all tools are sent. */
  readonly isOff: boolean;
  /** The command of each MCP server, by its name. */
  readonly servers: Readonly<Record<string, readonly [string, ...string[]]>>;
  /** The tool that each message is about, its arguments, the message, and whether the tool is called. */
  readonly turns: readonly (readonly [string, object, string, boolean])[];
  readonly answer: string;
}

const CALL = "toolgate_call_tool";
const asked = JSON.parse(readFileSync(0, "utf8")) as Asked;
const client = new Client(asked.target, { tenant: asked.tenant, timeoutMs: 60_000 });
const mcp: Record<string, McpClient> = {};
for (const [name, [command, ...args]] of Object.entries(asked.servers)) {
  const connected = new McpClient({ name: "talk", version: "1" });
  await connected.connect(new StdioClientTransport({ command, args, stderr: "ignore" }));
  mcp[name] = connected;
}
const options: FromMcpOptions = {
  ...(asked.strategy === undefined ? {} : { strategy: asked.strategy }),
  ...(asked.isOff ? { route: { options: { deferral: v1.DeferralMode.OFF } } } : {}),
};
const requests: { turn: number; is_first: boolean; tools: string[]; text: string }[] = [];
let turn = -1;
let tools: object[] = [];
const model = fakeModel();
const bind = model.bindTools.bind(model);
model.bindTools = (bound) => {
  tools = bound.map((one) => ("function" in one ? one : convertToOpenAITool(one as never)));
  return bind(bound);
};

/** The script's answer to the model's next request. */
function next(messages: BaseMessage[]): AIMessage {
  const names = (tools as { function: { name: string } }[]).map((one) => one.function.name);
  const isFirst = requests.at(-1)?.turn !== turn;
  const text = JSON.stringify({ tools, messages: messages.map(chat) });
  requests.push({ turn, is_first: isFirst, tools: names, text });
  const [name = "", args = {}, , isCalled = false] = asked.turns[turn] ?? [];
  if (!isFirst || !isCalled) return new AIMessage(asked.answer);
  const call = names.includes(CALL) ? { name: CALL, args: { name, arguments: args } } : { name, args };
  return new AIMessage({ content: "", tool_calls: [{ ...call, id: `call_${String(messages.length)}` }] });
}

/** A message as Chat Completions take it. */
function chat(message: BaseMessage): object {
  if (ToolMessage.isInstance(message)) {
    return { role: "tool", tool_call_id: message.tool_call_id, content: message.text };
  }
  if (!AIMessage.isInstance(message)) return { role: "user", content: message.text };
  const calls = (message.tool_calls ?? []).map(({ id, name, args }) => ({
    ...{ type: "function", id },
    function: { name, arguments: JSON.stringify(args) },
  }));
  return { role: "assistant", content: message.text, ...(calls.length > 0 ? { tool_calls: calls } : {}) };
}

// More answers than there are requests.
for (let left = 2 * asked.turns.length; left > 0; left--) model.respond(next);
const agent = createAgent({
  model,
  middleware: [await fromMcp(client, mcp, options)],
  checkpointer: new MemorySaver(),
});
for (const [, , text] of asked.turns) {
  turn += 1;
  await agent.invoke({ messages: [new HumanMessage(text)] }, { configurable: { thread_id: "1" } });
}
for (const connected of Object.values(mcp)) await connected.close();
client.close();
process.stdout.write(JSON.stringify(requests));
