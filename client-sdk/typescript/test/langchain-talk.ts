/** The forty messages to an agent of LangChain.js; if a model is named, to a model of LangChain's class for its provider. */
import { ChatAnthropic } from "@langchain/anthropic";
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import { MemorySaver } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";
import { Client as McpClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { fromMcp } from "@toolgate/client/langchain";
import { createAgent, fakeModel } from "langchain";

import {
  answer,
  api,
  assistant,
  type ChatTool,
  client,
  fetch,
  finish,
  model as name,
  next,
  options,
  said,
  servers,
} from "./talk.js";

const mcp: Record<string, McpClient> = {};
for (const [name, [command, ...args]] of Object.entries(servers)) {
  const connected = new McpClient({ name: "talk", version: "1" });
  await connected.connect(new StdioClientTransport({ command, args, stderr: "ignore" }));
  mcp[name] = connected;
}
let tools: ChatTool[] = [];

/** The script's answer to the model's next request. */
function respond(messages: BaseMessage[]): AIMessage {
  const call = next(tools, messages.map(chat));
  if (call === undefined) return new AIMessage(answer);
  return new AIMessage({ content: "", tool_calls: [{ ...call, id: `call_${String(messages.length)}` }] });
}

/** A message as Chat Completions take it. */
function chat(message: BaseMessage): object {
  if (ToolMessage.isInstance(message)) {
    return { role: "tool", tool_call_id: message.tool_call_id, content: message.text };
  }
  if (!AIMessage.isInstance(message)) return { role: "user", content: message.text };
  const calls = (message.tool_calls ?? []).map(({ id = "", name, args }) => ({
    ...{ id, name },
    arguments: JSON.stringify(args),
  }));
  return assistant(message.text, calls);
}

/** A model of no provider, whose requests are written as Chat Completions take them. */
function noProviders() {
  const model = fakeModel();
  const bind = model.bindTools.bind(model);
  model.bindTools = (bound) => {
    tools = bound.map((one) => ("function" in one ? one : convertToOpenAITool(one as never)) as ChatTool);
    return bind(bound);
  };
  // More answers than there are requests.
  for (let left = 100; left > 0; left--) model.respond(respond);
  return model;
}

/** The provider's own model, which the script stands in for. */
function providers() {
  const asking = { model: name, apiKey: "none" };
  return api === "anthropic"
    ? new ChatAnthropic({ ...asking, clientOptions: { fetch } })
    : new ChatOpenAI({ ...asking, useResponsesApi: true, configuration: { fetch } });
}

const model = name === "" ? noProviders() : providers();
const agent = createAgent({
  model,
  middleware: [await fromMcp(client, mcp, options)],
  checkpointer: new MemorySaver(),
});
for (const text of said()) {
  await agent.invoke({ messages: [new HumanMessage(text)] }, { configurable: { thread_id: "1" } });
}
for (const connected of Object.values(mcp)) await connected.close();
finish();
