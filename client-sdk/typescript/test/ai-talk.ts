/** The forty messages to an agent of the Vercel AI SDK; if a model is named, to its provider's of the SDK. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioMCPTransport } from "@ai-sdk/mcp/mcp-stdio";
import { createOpenAI } from "@ai-sdk/openai";
import { type McpClient, ToolgateConversation } from "@toolgate/client/ai";
import { generateText, type ModelMessage, stepCountIs } from "ai";
import { MockLanguageModelV3 } from "ai/test";

import { respond } from "./ai-chat.js";
import { api, client, fetch, finish, model as name, options, said, servers } from "./talk.js";

const model =
  name === ""
    ? new MockLanguageModelV3({ provider: "openai.chat", modelId: "gpt-5.5", doGenerate: respond })
    : api === "openai_responses"
      ? createOpenAI({ apiKey: "none", fetch }).responses(name)
      : createAnthropic({ apiKey: "none", fetch })(name);

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
