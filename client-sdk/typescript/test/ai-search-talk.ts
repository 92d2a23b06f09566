/** The forty messages to an agent of the Vercel AI SDK 7 with its own search for tools. */
import { generateText, isStepCount, type ModelMessage, type ToolSet, toolSearch } from "ai-7";
import { MockLanguageModelV3 } from "ai-7/test";
import { createMCPClient } from "ai-mcp-7";
import { StdioMCPTransport } from "ai-mcp-7/mcp-stdio";

import { respond } from "./ai-chat.js";
import { finish, said, servers } from "./talk.js";

const model = new MockLanguageModelV3({ doGenerate: respond as never });
const clients = await Promise.all(
  Object.values(servers).map(([command, ...args]) =>
    createMCPClient({ transport: new StdioMCPTransport({ command, args, stderr: "ignore" }) }),
  ),
);
const tools: ToolSet = { toolSearch: toolSearch() };
for (const [at, server] of Object.keys(servers).entries()) {
  for (const [name, tool] of Object.entries((await clients[at]?.tools()) ?? {})) {
    tools[`mcp__${server}__${name}`] = { ...tool, deferLoading: true };
  }
}
const messages: ModelMessage[] = [];
for (const content of said()) {
  messages.push({ role: "user", content });
  const { responseMessages } = await generateText({ model, tools, messages, stopWhen: isStepCount(6) });
  messages.push(...responseMessages);
}
for (const connected of clients) await connected.close();
finish();
