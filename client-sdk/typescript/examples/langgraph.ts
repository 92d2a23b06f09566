/**
 * A LangGraph graph of one's own over a real MCP server, whose tools are registered as it lists them. The model follows a
 * script. `TOOLGATE_TARGET` says where the service is.
 *
 *     npm run build && npm run build:test && node build/examples/langgraph.js
 */
import { pathToFileURL } from "node:url";

import { HumanMessage } from "@langchain/core/messages";
import { END, MemorySaver, START, StateGraph } from "@langchain/langgraph";
import { Client } from "@toolgate/client";
import {
  callsCondition,
  fromMcp,
  type FromMcpOptions,
  modelNode,
  toolNode,
  ToolgateState,
} from "@toolgate/client/langchain";

import { scripted } from "./langchain.js";
import { everything } from "./langchain-mcp.js";

/** Lets a graph add two numbers with a tool of the MCP server; its first call is refused. */
export async function add(client: Client, options: FromMcpOptions = {}) {
  const mcp = await everything();
  try {
    const toolgate = await fromMcp(client, { everything: mcp }, options);
    // Stands for a model such as new ChatAnthropic({ model: "claude-opus-5-5" }).
    const { model, shown } = scripted(
      [["mcp__everything__get-sum", { first: 2, second: 3 }]],
      [["mcp__everything__get-sum", { a: 2, b: 3 }]],
      "It is 5.",
    );
    const graph = new StateGraph(ToolgateState)
      .addNode("model", modelNode(toolgate, model))
      .addNode("tools", toolNode(toolgate))
      .addEdge(START, "model")
      .addConditionalEdges("model", callsCondition, ["tools", "model", END])
      .addEdge("tools", "model")
      .compile({ checkpointer: new MemorySaver() });
    const thread = { configurable: { thread_id: "1" } };
    const asked = new HumanMessage("What is the sum of 2 and 3?");
    const state = await graph.invoke({ messages: [asked] }, thread);
    return { messages: state.messages, shown, report: toolgate.report(state) };
  } finally {
    await mcp.close();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await using client = new Client(process.env["TOOLGATE_TARGET"], {
    tenant: "example-langgraph",
    timeoutMs: 10_000,
  });
  const { messages, shown, report } = await add(client);
  for (const names of shown) console.log(names);
  for (const { type, text } of messages) console.log(`${type}: ${text}`);
  console.log(report);
}
