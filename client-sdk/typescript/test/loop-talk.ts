/** The forty messages to a loop of one's own over a provider's API; each request is one that `Conversation` put together. */
import { Client as McpClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Conversation, type ModelRequest } from "@toolgate/client";

import { answerOf, api, client, finish, model, next, options, said, servers } from "./talk.js";

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
    request = await conversation.take(answerOf(api, next(request.tools, request.messages)));
  }
}
for (const connected of Object.values(mcp)) await connected.close();
finish();
