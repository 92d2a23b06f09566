/**
 * An agent of the Vercel AI SDK with a model that follows a script: its first call is refused, corrected, and runs;
 * then it searches. `TOOLGATE_TARGET` says where the service is.
 *
 *     npm run build && npm run build:test && node build/examples/ai-sdk.js
 */
import { pathToFileURL } from "node:url";

import { Client, v1 } from "@toolgate/client";
import { mcpDefinitions, modelFacing, ToolgateConversation } from "@toolgate/client/ai";
import { generateText, jsonSchema, stepCountIs, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";

/** A model's answer: a text, or calls of tools. */
type Line = string | (readonly [tool: string, input: object])[];

/** A model of Chat Completions that says what a script says. */
export function scripted(...script: Line[]): MockLanguageModelV3 {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  let calls = 0;
  return new MockLanguageModelV3({
    ...{ provider: "openai.chat", modelId: "gpt-5.5" },
    doGenerate: script.map((line) => {
      const isText = typeof line === "string";
      return {
        content: isText
          ? [{ type: "text", text: line }]
          : line.map(([toolName, input]) => ({
              ...{ type: "tool-call" as const, toolCallId: `call_${String(++calls)}`, toolName },
              input: JSON.stringify(input),
            })),
        finishReason: { unified: isText ? "stop" : "tool-calls", raw: undefined },
        usage,
        warnings: [],
      };
    }),
  });
}

/** A schema of required texts, as an MCP server would say it. */
function textsOf<T>(...required: string[]) {
  const properties = Object.fromEntries(required.map((name) => [name, { type: "string" as const }]));
  return jsonSchema<T>({ type: "object", properties, required });
}

/** The tools of a little server of notes. */
export function notes() {
  const kept = new Map([["1", "milk"]]);
  return {
    find_notes: tool({
      description: "Finds notes by a word in their text.",
      inputSchema: textsOf<{ text: string }>("text"),
      execute: ({ text }) => [...kept].filter(([, note]) => note.includes(text)).map(([id]) => id),
    }),
    delete_note: tool({
      description: "Deletes a note for good.",
      inputSchema: textsOf<{ id: string }>("id"),
      execute: ({ id }) => ({ deleted: kept.delete(id) }),
    }),
    list_calendars: tool({
      description: "Lists the calendars of this account.",
      inputSchema: textsOf<object>(),
      execute: () => ["home", "work"],
    }),
  };
}

/** Registers the tools and lets a model use them; a note must be found before it is deleted. */
export async function run(client: Client) {
  const tools = notes();
  const needs = { case: "hasPriorToolOutput", value: "mcp__notes__find_notes" } as const;
  await client.registerServer(
    {
      server: "notes",
      toolsListJson: await mcpDefinitions(tools),
      toolSettings: [{ name: "delete_note", precondition: { condition: needs } }],
    },
    { timeoutMs: 60_000 },
  );
  const managed = await modelFacing(tools, client.listTools({ server: "notes" }));
  const toolgate = new ToolgateConversation(client, managed, {
    route: { options: { topK: 2, deferral: v1.DeferralMode.ALWAYS } },
  });
  const model = scripted(
    [["mcp__notes__find_notes", { word: "milk" }]],
    [["mcp__notes__find_notes", { text: "milk" }]],
    [["toolgate_search_tools", { query: "select:mcp__notes__delete_note" }]],
    [["mcp__notes__delete_note", { id: "1" }]],
    "It is gone.",
  );
  const prompt = "Find the note about milk and delete it.";
  const result = await generateText({ model, prompt, stopWhen: stepCountIs(8), ...toolgate.settings() });
  return { result, shown: model.doGenerateCalls.map(({ tools }) => tools?.map(({ name }) => name) ?? []) };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const client = new Client(process.env["TOOLGATE_TARGET"], { tenant: "example-ai", timeoutMs: 10_000 });
  try {
    const { result, shown } = await run(client);
    console.log(JSON.stringify(shown, undefined, 1), result.text);
  } finally {
    client.close();
  }
}
