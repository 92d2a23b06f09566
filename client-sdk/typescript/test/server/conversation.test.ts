/** A loop of one's own, with answers of a script in each provider's API, against a service. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client as McpSdkClient } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import {
  type Api,
  Client,
  Conversation,
  type ConversationOptions,
  type McpClient,
  type ModelRequest,
  ToolgateError,
  v1,
} from "@toolgate/client";

import { run, scripted } from "../../examples/loop.js";
import { mistakesIn } from "../provider-types.js";
import { BETAS } from "./anthropic-api.js";
import { checkPrefix } from "./prefix.js";
import { freshTenant, Service } from "./service.js";

const [SEARCH, CALL] = ["toolgate_search_tools", "toolgate_call_tool"];
const [NOW, STATUS] = ["mcp__time__get_current_time", "mcp__git__git_status"];
const [FIND, CREATE] = ["mcp__notes__find_notes", "mcp__notes__create_note"];
const LONG = "Here is what I know of clocks, at length. ".repeat(600);
const MODELS: Readonly<Record<Api, string>> = {
  anthropic: "claude-opus-5-5",
  openai_chat: "gpt-6.1",
  openai_responses: "gpt-6.1",
  gemini: "gemini-3-pro",
};
const APIS = Object.keys(MODELS) as Api[];

/** A model's answer: a text, or a call. */
type Step = string | readonly [name: string, args: object];

const textsOf = (...required: string[]) => ({
  type: "object" as const,
  properties: Object.fromEntries(required.map((name) => [name, { type: "string" }])),
  required,
});

/** A little MCP server in this process. */
function inProcess(tools: Record<string, readonly [about: string, ...properties: string[]]>): McpClient {
  return {
    listTools: () =>
      Promise.resolve({
        tools: Object.entries(tools).map(([name, [description, ...properties]]) => {
          return { name, description, inputSchema: textsOf(...properties) };
        }),
      }),
    callTool: ({ name, arguments: args }) =>
      Promise.resolve({
        isError: name === "git_status",
        content: [{ type: "text", text: name === "git_status" ? "no such path" : JSON.stringify(args) }],
      }),
  };
}

const servers = {
  time: inProcess({
    get_current_time: ["Get current time in a specific timezone.", "timezone"],
    convert_time: ["Convert time between timezones.", "time", "source", "target"],
  }),
  git: inProcess({
    git_status: ["Shows the working tree status.", "repo_path"],
    git_log: ["Shows the commit logs.", "repo_path"],
  }),
};

let made = 0;

/** A model's answer in an API's form. */
function answer(api: Api, step: Step): object {
  const id = `call_${String(++made)}`;
  const [name, args] = typeof step === "string" ? ["", {}] : step;
  const isText = typeof step === "string";
  const written = JSON.stringify(args);
  switch (api) {
    case "anthropic":
      return {
        content: [isText ? { type: "text", text: step } : { type: "tool_use", id, name, input: args }],
      };
    case "gemini": {
      const part = isText ? { text: step } : { functionCall: { id, name, args } };
      return { candidates: [{ content: { role: "model", parts: [part] } }] };
    }
    case "openai_chat": {
      const call = { id, type: "function", function: { name, arguments: written } };
      const said = isText ? { content: step } : { tool_calls: [call] };
      return { choices: [{ message: { role: "assistant", ...said } }] };
    }
    case "openai_responses": {
      const content = [{ type: "output_text", text: step, annotations: [] }];
      if (isText)
        return { output: [{ id, type: "message", status: "completed", role: "assistant", content }] };
      if (name !== SEARCH)
        return { output: [{ type: "function_call", call_id: id, name, arguments: written }] };
      const search = { type: "tool_search_call", call_id: id, arguments: args, status: "completed" };
      return { output: [{ id, ...search, execution: "client" }] };
    }
  }
}

/** Plays a script; gives the requests. */
async function play(conversation: Conversation, api: Api, text: string, ...script: Step[]) {
  const requests: ModelRequest[] = [];
  const steps = script.values();
  let request: ModelRequest | undefined = await conversation.say(text);
  while (request !== undefined) {
    requests.push(request);
    const { value: step } = steps.next();
    assert.ok(step !== undefined, "the script ends");
    request = await conversation.take(answer(api, step));
  }
  return requests;
}

function connected({ target }: Service): Client {
  return new Client(target, { tenant: freshTenant(), timeoutMs: 30_000 });
}

const quiet = { onWarning: () => undefined };
const one = { ...quiet, route: { options: { topK: 1, deferral: v1.DeferralMode.ALWAYS } } };

for (const api of APIS) {
  test(`with ${api} the prefix stays, and what Gate allows runs`, async () => {
    await using service = await Service.get();
    await using client = connected(service);
    const isNative = api === "anthropic" || api === "openai_responses";
    const call = (name: string, args: object): Step =>
      isNative ? [name, args] : [CALL, { name, arguments: args }];
    let told = 0n;
    const route = client.route.bind(client);
    client.route = async (...asked) => {
      const turn = await route(...asked);
      told += (turn.accounting?.phase1Tokens ?? 0n) + (turn.accounting?.phase2Tokens ?? 0n);
      return turn;
    };
    const options = { ...one, model: MODELS[api] };
    const conversation = await Conversation.fromMcp(client, api, servers, options);
    const asked = `${LONG}what time is it in Oslo right now?`;
    const requests = await play(conversation, api, asked, call(NOW, { timezone: "Europe/Oslo" }), "Noon.");
    assert.equal(conversation.text, "Noon.");
    const search: Step = [SEARCH, { query: `select:${STATUS}` }];
    const status = call(STATUS, { repo_path: "/x" });
    requests.push(...(await play(conversation, api, "and the other one?", search, status, "None.")));
    assert.equal(conversation.text, "None.");

    const { NATIVE, ENVELOPE } = v1.PromptStrategy;
    assert.deepEqual(
      requests.map(({ strategy }) => strategy),
      Array(5).fill(isNative ? NATIVE : ENVELOPE),
    );
    for (const { tools } of requests) assert.deepEqual(tools, requests[0]?.tools, "the definitions stay");
    checkPrefix(requests.map(({ messages }) => messages));
    for (const { betas } of requests) assert.deepEqual(betas, api === "anthropic" ? BETAS : []);
    assert.match(JSON.stringify(requests[3]?.messages), new RegExp(STATUS));
    assert.match(JSON.stringify(requests[1]?.messages), /\{.*timezone.*Europe\/Oslo.*\}/);
    const failure = JSON.stringify(conversation.messages.at(-2));
    assert.match(failure, api === "anthropic" ? /"is_error":true/ : /error/);
    assert.match(failure, /no such path/);
    const kept = JSON.stringify(conversation.messages);
    assert.ok(!kept.includes("[Toolgate]") && !kept.includes("additional_tools"));
    const { requests: count, searches, price, strategies, shownTokens } = conversation.report();
    assert.deepEqual([count, searches], [5, 1]);
    assert.deepEqual(strategies, { [isNative ? "native" : "envelope"]: 5 });
    assert.ok(price !== undefined && price.sent < price.routedAnew);
    assert.equal(shownTokens, Number(told), "the turns' tokens are added up");
    const typed = requests.map(({ tools, messages, betas }, at) => ({
      name: String(at),
      tools,
      messages,
      betas,
    }));
    assert.deepEqual(mistakesIn(api, typed), []);
  });
}

const notes = [
  { name: "find_notes", description: "Finds notes by a word in their text.", inputSchema: textsOf("text") },
  { name: "create_note", description: "Writes a note.", inputSchema: textsOf("title") },
];

test("refusals and failures are told, parallel calls are answered in order, and own tools are run", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const ran: unknown[] = [];
  const own = [{ name: "clock", description: "Tells the time.", input_schema: { type: "object" } }];
  const runTool = (server: string, name: string, args: object) => {
    ran.push([server, name, args]);
    if (name === "create_note") throw new Error("the disk is full");
    return { found: 1 };
  };
  const options = {
    ...quiet,
    own,
    route: { options: { pinnedTools: ["notes/find_notes", "notes/create_note"] } },
  };
  const conversation = await Conversation.fromTools(client, "anthropic", { notes }, runTool, options);
  const request = await conversation.say("search through my notes");
  assert.equal(request.tools[0]?.name, "clock", "the agent's own come first");
  const uses = [
    [FIND, { text: 7 }],
    [FIND, { text: "milk" }],
    [CREATE, { title: "milk" }],
    ["mcp__notes__burn", {}],
    ["clock", {}],
  ] as const;
  const content = uses.map(([name, input], at) => ({
    type: "tool_use",
    id: `use_${String(at)}`,
    name,
    input,
  }));
  assert.ok((await conversation.take({ content })) !== undefined);
  const results = conversation.messages.at(-1)?.["content"] as {
    is_error: boolean;
    content: string;
    tool_use_id: string;
  }[];
  assert.deepEqual(
    results.map(({ is_error }) => is_error),
    [true, false, true, true, false],
  );
  assert.deepEqual(
    results.map(({ tool_use_id }) => tool_use_id),
    content.map(({ id }) => id),
  );
  assert.match(results[0]?.content ?? "", /arguments_invalid/);
  assert.equal(results[2]?.content, "the disk is full");
  assert.match(results[3]?.content ?? "", /unknown_tool/);
  assert.deepEqual(ran, [
    ["notes", "find_notes", { text: "milk" }],
    ["notes", "create_note", { title: "milk" }],
    ["", "clock", {}],
  ]);
  assert.equal(await conversation.take(answer("anthropic", "Done.")), undefined);
  assert.equal(conversation.text, "Done.");
});

for (const [strategy, expected] of [
  ["pass", [CREATE, FIND]],
  ["cut", [SEARCH, FIND]],
] as const) {
  test(`${strategy} defines tools alone`, async () => {
    await using service = await Service.get();
    await using client = connected(service);
    const options = { ...one, strategy };
    const conversation = await Conversation.fromTools(client, "openai_chat", { notes }, () => "[]", options);
    const [request] = await play(conversation, "openai_chat", "find a note by a word", "None.");
    const names = request?.tools.map((tool) => (tool["function"] as { name: string }).name);
    assert.deepEqual(names, expected);
    assert.deepEqual(request?.messages, conversation.messages.slice(0, -1));
    assert.deepEqual(conversation.report().strategies, { [strategy]: 1 });
  });
}

test("changed tools are followed, and lost ones registered again", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const garden = new McpServer({ name: "garden", version: "1" });
  const done = (text: string) => () => ({ content: [{ type: "text" as const, text }] });
  const water = "mcp__garden__water_tomatoes";
  garden.registerTool("build_greenhouse", { description: "Builds a greenhouse." }, () => {
    garden.registerTool("water_tomatoes", { description: "Waters the tomatoes." }, done("watered"));
    return done("built")();
  });
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await garden.connect(theirs);
  const mcp = new McpSdkClient({ name: "test", version: "1" });
  await mcp.connect(ours);
  const warnings: string[] = [];
  const onWarning = (warning: string) => warnings.push(warning);
  const options: ConversationOptions = { onWarning };
  const conversation = await Conversation.fromMcp(client, "openai_chat", { garden: mcp }, options);
  const text = "build a greenhouse in the garden and water the tomatoes";
  const build: Step = ["mcp__garden__build_greenhouse", {}];
  const requests = await play(conversation, "openai_chat", text, build, [water, {}], "Done.");
  const told = requests.map(({ tools, messages }) => JSON.stringify([tools, messages]).includes(water));
  assert.deepEqual(told.slice(0, 2), [false, true]);
  await client.unregisterServer({ server: "garden" });
  await play(conversation, "openai_chat", text, "Again.");
  const answers = conversation.messages.filter(({ role }) => role === "tool");
  assert.deepEqual(
    answers.map(({ content }) => content),
    ["built", "watered"],
  );
  const lost = "the service has lost the catalog: MCP servers are registered again";
  assert.equal(warnings.filter((warning) => warning === lost).length, 1);
  const listed: string[] = [];
  for await (const { name } of client.listServers({})) listed.push(name);
  assert.deepEqual(listed, ["garden"]);
});

test("a conversation goes on elsewhere, and survives an outage", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const options = { ...one, model: MODELS.anthropic };
  const first = await Conversation.fromMcp(client, "anthropic", servers, options);
  const asked = `${LONG}what time is it in Oslo right now?`;
  const requests = await play(first, "anthropic", asked, [NOW, { timezone: "Europe/Oslo" }], "Noon.");
  const { messages, state } = JSON.parse(
    JSON.stringify({ messages: first.messages, state: first.state }),
  ) as Pick<Conversation, "messages" | "state">;
  const faults: string[] = [];
  const onFault = ({ code }: ToolgateError) => faults.push(code);
  const second = await Conversation.fromMcp(client, "anthropic", servers, {
    ...options,
    messages,
    state,
    onFault,
  });
  requests.push(await second.say("what time is it in Tokyo right now?"));
  client.route = () => Promise.reject(new ToolgateError("UNAVAILABLE", "gone"));
  const during = await second.take(answer("anthropic", [NOW, { timezone: "Asia/Tokyo" }]));
  assert.ok(during !== undefined);
  requests.push(during);
  assert.equal(during.reason, v1.StrategyReason.KEPT);
  assert.equal(during.reasonMessage, "Toolgate could not route: the tools are those of before");
  assert.equal(await second.take(answer("anthropic", "Late.")), undefined);
  assert.equal(second.report().requests, 3);
  assert.deepEqual(faults, ["UNAVAILABLE"]);
  for (const { tools } of requests) assert.deepEqual(tools, requests[0]?.tools);
  checkPrefix(requests.map((request) => request.messages));
  assert.match(JSON.stringify(during.messages.at(-1)), /Asia\/Tokyo/);
});

test("what fails adds no messages, and its retry runs nothing twice", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const ran: string[] = [];
  const runTool = (_: string, name: string) => {
    ran.push(name);
    return "milk";
  };
  const conversation = await Conversation.fromTools(client, "anthropic", { notes }, runTool, one);
  const route = client.route.bind(client);
  const gate = client.gate.bind(client);
  const refuse = () => Promise.reject(new ToolgateError("INVALID_ARGUMENT", "no"));
  client.route = refuse;
  await assert.rejects(conversation.say("find a note by a word in its text"), ToolgateError);
  assert.deepEqual(conversation.messages, []);
  client.route = route;
  await conversation.say("find a note by a word in its text");
  const asked = structuredClone(conversation.messages);
  assert.equal(asked.length, 1);
  const called = answer("anthropic", [FIND, { text: "milk" }]);
  client.gate = refuse;
  await assert.rejects(conversation.take(called), ToolgateError);
  client.gate = gate;
  client.route = refuse;
  await assert.rejects(conversation.take(called), ToolgateError);
  assert.deepEqual([conversation.messages, ran], [asked, ["find_notes"]]);
  client.route = route;
  const request = await conversation.take(structuredClone(called));
  assert.deepEqual([request?.messages.length, conversation.messages.length, ran], [3, 3, ["find_notes"]]);
  assert.equal(await conversation.take(answer("anthropic", "Milk.")), undefined);
  assert.equal(conversation.report().requests, 2);
});

test("a message without text keeps the tools and says why, and no servers are no catalog", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  await Conversation.fromTools(client, "anthropic", { notes }, () => "[]", quiet);
  const image = { type: "image", source: { type: "url", url: "https://example.com/milk.png" } };
  const conversation = await Conversation.fromTools(client, "anthropic", { notes }, () => "[]", one);
  const [first] = await play(conversation, "anthropic", "find a note by a word in its text", "None.");
  const second = await conversation.say([image]);
  assert.deepEqual(second.tools, first?.tools);
  assert.equal(second.reasonMessage, "there is no text to route by: the tools are those of before");
  const unasked = await Conversation.fromTools(client, "anthropic", { notes }, () => "[]", one);
  const { reasonMessage } = await unasked.say([image]);
  assert.equal(reasonMessage, "there is no text to route by: the agent's own tools alone");

  const own = [{ name: "clock", description: "Tells the time.", input_schema: { type: "object" } }];
  const alone = await Conversation.fromTools(client, "anthropic", {}, () => "noon", { ...quiet, own });
  const request = await alone.say("find a note by a word in its text");
  assert.deepEqual(request.tools, own);
  assert.equal(request.reasonMessage, "there are no servers to route among: the agent's own tools alone");
  const uses = [FIND, "clock"].map((name) => ({ type: "tool_use", id: name, name, input: {} }));
  await alone.take({ content: uses });
  const results = alone.messages.at(-1)?.["content"] as { content: string }[];
  assert.match(results[0]?.content ?? "", /unknown_tool/);
  assert.equal(results[1]?.content, "noon");
});

test("what a provider did itself is not answered, and calls of own tools may have no arguments", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const ran: unknown[] = [];
  const own = [{ type: "web_search" }, { type: "function", name: "clock", parameters: { type: "object" } }];
  const runOwn = (_: string, name: string, args: object) => {
    ran.push([name, args]);
    return "noon";
  };
  const options = { ...one, own, runOwn };
  const conversation = await Conversation.fromTools(
    client,
    "openai_responses",
    { notes },
    () => "[]",
    options,
  );
  await conversation.say("find a note by a word in its text");
  const search = { type: "tool_search_call", execution: "server", call_id: null, arguments: {} };
  const called = (name: string) => ({ type: "function_call", call_id: `call_${name}`, name, arguments: "" });
  const output = [search, called("clock"), called("")];
  assert.ok((await conversation.take({ output })) !== undefined);
  assert.deepEqual(ran, [["clock", {}]], "no call of no name is an own tool's");
  const kinds = conversation.messages.slice(4).map(({ type }) => type);
  assert.deepEqual(kinds, ["function_call_output", "function_call_output"]);
  const query = { query: "find a note by a word in its text" };
  const open = { type: "tool_search_call", call_id: "call_open", arguments: query };
  await conversation.take({ output: [open] });
  const [some, count] = conversation.messages.slice(-2);
  assert.match(JSON.stringify(some), /tool_search_output.*call_open.*find_notes/);
  assert.equal(count?.["role"], "developer");
  assert.match(String(count["content"]), /^\{"deferred_tools":\d+\}$/);
  const nothing = { ...open, call_id: "call_none", arguments: { query: "+xylophone" } };
  await conversation.take({ output: [nothing, called("clock")] });
  const [none, , reason] = conversation.messages.slice(-3);
  assert.deepEqual([none?.["type"], none?.["tools"]], ["tool_search_output", []]);
  assert.equal(reason?.["role"], "developer", "the output has definitions alone");
  assert.match(String(reason["content"]), /No tool fits/);
  assert.doesNotMatch(
    String(reason["content"]),
    /xylophone/,
    "the developer repeats no words of the model's",
  );
  assert.equal(await conversation.take({ output: [search] }), undefined);

  const chat = await Conversation.fromTools(client, "openai_chat", { notes }, () => "[]", one);
  await chat.say("find a note by a word in its text");
  assert.equal(await chat.take({ id: "1", object: "chat.completion", choices: [] }), undefined);
  assert.equal(chat.messages.length, 1);
});

test("a conversation that one call does not take is sent with its definitions", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const own = [{ name: "clock", description: "Tells the time.", input_schema: { type: "object" } }];
  const messages = Array.from({ length: 2 }, () => ({ role: "user", content: "x".repeat(512 * 1024) }));
  const options = { ...one, own, messages };
  const conversation = await Conversation.fromTools(client, "anthropic", { notes }, () => "[]", options);
  const [request] = await play(conversation, "anthropic", "find a note by a word in its text", "None.");
  assert.deepEqual(
    request?.tools.map((tool) => tool["name"]),
    ["clock", SEARCH, FIND],
  );
  assert.deepEqual(request.messages, conversation.messages.slice(0, -1));
});

test("mistakes are refused at once", async () => {
  await using client = new Client();
  const made = (api: string, options: object = {}) =>
    Conversation.fromTools(client, api as Api, { notes }, () => "", options);
  await assert.rejects(made("mcp"), /api is one of anthropic, .*, not "mcp"/);
  await assert.rejects(made("gemini", { strategy: "cheap" }), /strategy is one of .*"pass", not "cheap"/);
  await assert.rejects(made("gemini", { register: { git: {} } }), /no MCP server git: there is notes/);
});

test("the example", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const { create, requests } = scripted();
  const conversation = await run(client, { create });
  assert.equal(conversation.text, "It is 5.");
  assert.match(JSON.stringify(requests[1]?.messages), /The sum of 2 and 3 is 5/);
  assert.equal(conversation.report().requests, 2);
});
