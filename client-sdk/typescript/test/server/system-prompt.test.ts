/** The tokens of the system prompt, as each integration tells them to Route (A19), against a service. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { HumanMessage } from "@langchain/core/messages";
import { START, StateGraph } from "@langchain/langgraph";
import { Agent, run, setTracingDisabled, tool as agentsTool } from "@openai/agents";
import { Client } from "@toolgate/client";
import { ToolgateConversation as AiConversation } from "@toolgate/client/ai";
import { fromTools, modelNode, ToolgateState } from "@toolgate/client/langchain";
import { ToolgateConversation as AgentsConversation } from "@toolgate/client/openai-agents";
import { jsonSchema, tool as aiTool } from "ai";
import { createAgent } from "langchain";

import { notes, scripted as langchainModel } from "../../examples/langchain.js";
import { scripted as agentsModel } from "../../examples/openai-agents.js";
import { freshTenant, Service } from "./service.js";

setTracingDisabled(true);

/** Of 100 tokens, as they are estimated. */
const SYSTEM = "Help with notes.".repeat(25);
const SAID = "Find the note about milk.";
const QUIET = { onOwnTools: () => undefined, onWarning: () => undefined };

/** Options of an integration. */
interface Options {
  readonly route?: { readonly options: { readonly systemTokens: number } };
  readonly countTokens?: false;
}
/** Asks a model with this system prompt; none where it is empty. */
type Ask = (client: Client, system: string, options: Options) => Promise<unknown>;

const WAYS: Readonly<Record<string, Ask>> = {
  LangChain: async (client, systemPrompt, options) => {
    const toolgate = await fromTools(client, { notes: notes() }, { ...QUIET, ...options });
    const { model } = langchainModel("None.");
    const agent = createAgent({ model, middleware: [toolgate], systemPrompt });
    await agent.invoke({ messages: [new HumanMessage(SAID)] });
  },
  LangGraph: async (client, system, options) => {
    const toolgate = await fromTools(client, { notes: notes() }, { ...QUIET, ...options });
    const { model } = langchainModel("None.");
    const prompt = system === "" ? {} : { prompt: system };
    const graph = new StateGraph(ToolgateState)
      .addNode("model", modelNode(toolgate, model, prompt))
      .addEdge(START, "model");
    await graph.compile().invoke({ messages: [new HumanMessage(SAID)] });
  },
  "the Agents SDK": async (client, instructions, options) => {
    const parameters = { type: "object", properties: {}, required: [], additionalProperties: true } as never;
    const described = { name: "find_notes", description: "Finds notes.", strict: false as const, parameters };
    const find = agentsTool({ ...described, execute: () => "none" });
    const toolgate = await AgentsConversation.fromTools(client, { notes: [find] }, { ...QUIET, ...options });
    const agent = new Agent({ name: "desk", model: agentsModel("None."), instructions });
    await run(toolgate.agent(agent), SAID);
  },
  // Version 7 tells the system prompt of a step; version 6 does not.
  "a step of the AI SDK": async (client, instructions, options) => {
    const inputSchema = jsonSchema({ type: "object", properties: {} });
    const find = aiTool({ description: "Finds notes.", inputSchema, execute: () => "none" });
    const toolgate = await AiConversation.fromTools(client, { notes: { find } }, { ...QUIET, ...options });
    const step = { messages: [{ role: "user", content: SAID }], model: "m", steps: [], stepNumber: 0 };
    await toolgate.prepareStep({ ...step, ...(instructions === "" ? {} : { instructions }) } as never);
  },
};

for (const [name, ask] of Object.entries(WAYS)) {
  test(`Route is told the tokens of the system prompt by ${name}`, async () => {
    await using service = await Service.get();
    await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
    const told: (number | undefined)[] = [];
    const route = client.route.bind(client);
    client.route = (request, ...rest) => {
      told.push(request.options?.systemTokens);
      return route(request, ...rest);
    };
    await ask(client, SYSTEM, {});
    await ask(client, "", {});
    await ask(client, SYSTEM, { route: { options: { systemTokens: 7 } } });
    await ask(client, SYSTEM, { countTokens: false });
    assert.deepEqual(told, [100, undefined, 7, undefined]);
  });
}

test("system prompts of several parts count as one", async () => {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const told: unknown[] = [];
  const route = client.route.bind(client);
  client.route = (request, ...rest) => {
    told.push(request.options?.systemTokens);
    return route(request, ...rest);
  };
  const inputSchema = jsonSchema({ type: "object", properties: {} });
  const find = aiTool({ description: "Finds notes.", inputSchema, execute: () => "none" });
  const toolgate = await AiConversation.fromTools(client, { notes: { find } }, QUIET);
  const part = { role: "system", content: SYSTEM };
  const messages = [{ role: "user", content: SAID }];
  const step = { messages, model: "m", steps: [], stepNumber: 0, instructions: [part, part] };
  await toolgate.prepareStep(step as never);
  assert.deepEqual(told, [200]);
});
