/** The forty messages to an agent of the Vercel AI SDK. */
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioMCPTransport } from "@ai-sdk/mcp/mcp-stdio";
import { type McpClient, ToolgateConversation } from "@toolgate/client/ai";
import { generateText, type ModelMessage, stepCountIs } from "ai";
import { MockLanguageModelV3 } from "ai/test";

import { respond } from "./ai-chat.js";
import { client, finish, options, said, servers } from "./talk.js";

const model = new MockLanguageModelV3({
  ...{ provider: "openai.chat", modelId: "gpt-5.5" },
  doGenerate: respond,
});

const mcp: Record<string, () => Promise<McpClient>> = {};
for (const [name, [command, ...args]] of Object.entries(servers)) {
  mcp[name] = () =>
    createMCPClient({ transport: new StdioMCPTransport({ command, args, stderr: "ignore" }) });
}
const toolgate = await ToolgateConversation.fromMcp(client, mcp, options);
const messages: ModelMessage[] = [];
for (const content of said()) {
  messages.push({ role: "user", content });
  const asked = { model, messages, stopWhen: stepCountIs(4) };
  const { response } = await generateText({ ...asked, ...toolgate.settings() });
  messages.push(...response.messages);
}
await toolgate.close();
finish();
