/** The forty messages to an agent of the Vercel AI SDK; if a model is named, to Anthropic's provider of the SDK. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioMCPTransport } from "@ai-sdk/mcp/mcp-stdio";
import { type McpClient, ToolgateConversation } from "@toolgate/client/ai";
import { generateText, type ModelMessage, stepCountIs } from "ai";
import { MockLanguageModelV3 } from "ai/test";

import { respond } from "./ai-chat.js";
import { answer, client, finish, model as name, next, options, said, servers } from "./talk.js";

interface Body {
  readonly tools?: object[];
  readonly messages: object[];
}

/** Answers a request of Anthropic's Messages by the script. */
function fetch(_: unknown, init?: RequestInit): Promise<Response> {
  const { tools = [], messages } = JSON.parse(init?.body as string) as Body;
  const call = next(tools, messages);
  const id = `call_${String(messages.length)}`;
  const [block, reason] =
    call === undefined
      ? [{ type: "text", text: answer }, "end_turn"]
      : [{ type: "tool_use", id, name: call.name, input: call.args }, "tool_use"];
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { type: "message", id: `message_${id}`, role: "assistant", model: name, content: [block] };
  return Promise.resolve(Response.json({ ...message, stop_reason: reason, stop_sequence: null, usage }));
}

const model =
  name === ""
    ? new MockLanguageModelV3({ provider: "openai.chat", modelId: "gpt-5.5", doGenerate: respond })
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
