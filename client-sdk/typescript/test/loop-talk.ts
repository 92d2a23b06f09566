/** The forty messages to a loop of one's own over a provider's API; each request is one that `Conversation` put together. */
import { Client as McpClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { type Api, Conversation, type ModelRequest } from "@toolgate/client";

import { answer, api, client, finish, model, next, options, said, servers } from "./talk.js";

type Call = { readonly name: string; readonly args: object } | undefined;

let answers = 0;

/** The script's answer in an API's form. */
function answered(form: Api, call: Call): object {
  const id = `call_${String(++answers)}`;
  const [name, args] = call === undefined ? ["", {}] : [call.name, call.args];
  const written = JSON.stringify(args);
  if (form === "anthropic") {
    const block =
      call === undefined ? { type: "text", text: answer } : { type: "tool_use", id, name, input: args };
    return { role: "assistant", content: [block] };
  }
  if (form === "openai_responses") {
    const content = [{ type: "output_text", text: answer, annotations: [] }];
    const message = { type: "message", id, role: "assistant", status: "completed", content };
    return {
      output: [
        call === undefined ? message : { type: "function_call", call_id: id, name, arguments: written },
      ],
    };
  }
  const made = { id, type: "function", function: { name, arguments: written } };
  const message = call === undefined ? { content: answer } : { content: null, tool_calls: [made] };
  return { choices: [{ message: { role: "assistant", ...message } }] };
}

const mcp: Record<string, McpClient> = {};
for (const [name, [command, ...args]] of Object.entries(servers)) {
  const connected = new McpClient({ name: "talk", version: "1" });
  await connected.connect(new StdioClientTransport({ command, args, stderr: "ignore" }));
  mcp[name] = connected;
}
const conversation = await Conversation.fromMcp(client, api, mcp, { ...options, model });
for (const text of said()) {
  let request: ModelRequest | undefined = await conversation.say(text);
  while (request !== undefined) {
    request = await conversation.take(answered(api, next(request.tools, request.messages)));
  }
}
for (const connected of Object.values(mcp)) await connected.close();
finish();
