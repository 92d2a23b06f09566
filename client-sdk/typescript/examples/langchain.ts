/**
 * A LangChain agent with a model that follows a script: its first call is refused, corrected, and runs; then it
 * searches. `TOOLGATE_TARGET` says where the service is.
 *
 *     npm run build && npm run build:test && node build/examples/langchain.js
 */
import { pathToFileURL } from "node:url";

import { MemorySaver } from "@langchain/langgraph";
import { Client, v1 } from "@toolgate/client";
import { mcpDefinitions, modelFacing, toolgateMiddleware } from "@toolgate/client/langchain";
import { AIMessage, createAgent, fakeModel, tool } from "langchain";

/** A model's answer: a text, or calls of tools. */
type Line = string | (readonly [tool: string, args: Record<string, unknown>])[];

/** A model that says what a script says; `shown` has the names of the tools that it saw each time. */
export function scripted(...script: Line[]) {
  let calls = 0;
  const model = fakeModel();
  for (const line of script) {
    if (typeof line === "string") model.respond(new AIMessage(line));
    else model.respondWithTools(line.map(([name, args]) => ({ name, args, id: `call_${String(++calls)}` })));
  }
  const shown: string[][] = [];
  const bind = model.bindTools.bind(model);
  model.bindTools = (tools) => {
    shown.push(tools.map(nameOf));
    return bind(tools);
  };
  return { model, shown };
}

/** A tool's name, also of a definition of Chat Completions. */
function nameOf(tool: object): string {
  const { name, function: defined } = tool as { name?: string; function?: { name: string } };
  return name ?? defined?.name ?? "";
}

/** A schema of required texts, as an MCP server would say it. */
function textsOf(...required: string[]) {
  const properties = Object.fromEntries(required.map((name) => [name, { type: "string" as const }]));
  return { type: "object" as const, properties, required };
}

/** The tools of a little server of notes. */
export function notes() {
  const kept = new Map([["1", "milk"]]);
  const find = ({ text }: { text: string }) =>
    JSON.stringify([...kept].filter(([, note]) => note.includes(text)).map(([id]) => id));
  const erase = ({ id }: { id: string }) => JSON.stringify({ deleted: kept.delete(id) });
  return [
    tool((args) => find(args as { text: string }), {
      ...{ name: "find_notes", description: "Finds notes by a word in their text." },
      schema: textsOf("text"),
    }),
    tool((args) => erase(args as { id: string }), {
      ...{ name: "delete_note", description: "Deletes a note for good." },
      schema: textsOf("id"),
    }),
    tool(() => '["home", "work"]', {
      ...{ name: "list_calendars", description: "Lists the calendars of this account." },
      schema: textsOf(),
    }),
  ];
}

/** Registers the tools and lets an agent use them; a note must be found before it is deleted. */
export async function run(client: Client) {
  const tools = notes();
  const needs = { case: "hasPriorToolOutput", value: "mcp__notes__find_notes" } as const;
  await client.registerServer(
    {
      server: "notes",
      toolsListJson: mcpDefinitions(tools),
      toolSettings: [{ name: "delete_note", precondition: { condition: needs } }],
    },
    { timeoutMs: 60_000 },
  );
  const managed = await modelFacing(tools, client.listTools({ server: "notes" }));
  const toolgate = toolgateMiddleware(client, managed, {
    route: { options: { topK: 2, deferral: v1.DeferralMode.ALWAYS } },
  });
  const { model, shown } = scripted(
    [["mcp__notes__find_notes", { word: "milk" }]],
    [["mcp__notes__find_notes", { text: "milk" }]],
    [["toolgate_search_tools", { query: "select:mcp__notes__delete_note" }]],
    [["mcp__notes__delete_note", { id: "1" }]],
    "It is gone.",
  );
  const agent = createAgent({ model, middleware: [toolgate], checkpointer: new MemorySaver() });
  const { messages } = await agent.invoke(
    { messages: [{ role: "user", content: "Find the note about milk and delete it." }] },
    { configurable: { thread_id: "1" } },
  );
  return { messages, shown };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const client = new Client(process.env["TOOLGATE_TARGET"], {
    tenant: "example-langchain",
    timeoutMs: 10_000,
  });
  try {
    const { messages, shown } = await run(client);
    console.log(JSON.stringify(shown, undefined, 1), messages.at(-1)?.text);
  } finally {
    client.close();
  }
}
