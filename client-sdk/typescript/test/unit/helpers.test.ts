/** The helpers beyond the conformance cases: bounds, odd content, and what JavaScript makes of JSON. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { create, fromBinary, toBinary, toJson } from "@bufbuild/protobuf";

import {
  allOf,
  anyOf,
  applyPool,
  calls,
  canDefer,
  cel,
  hasPriorToolOutput,
  history,
  isAuthenticated,
  layout,
  milestoneReached,
  not,
  modelRequest,
  renderedTools,
  SEARCH_TOOL,
  toToolError,
  toToolReferences,
  toToolResult,
  v1,
} from "../../src/node.js";
import { answerOf } from "../../src/offering.js";

function tool(inputSchemaJson: string, name = "mcp__a__b"): v1.ActiveTool {
  return create(v1.ActiveToolSchema, { modelName: name, inputSchemaJson });
}

function turnOf(name: string, id: string, failed = false): object[] {
  return [
    { role: "assistant", content: [{ type: "tool_use", id, name }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: id, is_error: failed }] },
  ];
}

test("odd entries are passed over", () => {
  const cyclic: Record<string, unknown> = { role: "user" };
  cyclic["content"] = [cyclic];
  const hostile = {
    role: "assistant",
    get content(): never {
      throw new Error("read");
    },
  };
  const odd = [
    ...[undefined, null, 7, "x", [], () => 0, new Map(), Symbol("x"), 8n, cyclic, hostile],
    { role: "assistant", content: [hostile, cyclic, { type: "tool_use", id: "1", name: "\ud800" }] },
    { role: "user", content: [{ type: "tool_result", content: "{".repeat(100_000) }] },
    { role: "user", content: [{ type: "tool_result", content: "[".repeat(60_000) }] },
    { type: "constructor", role: "toString", content: [{ type: "__proto__" }] },
  ];
  const seen = history.scan(odd);
  assert.deepEqual([seen.discovered, seen.calls], [[], []]);
  assert.equal(history.strip(odd, []).messages.length, odd.length);
});

test("a long history fits the state, and keeps what preconditions ask for", () => {
  const messages = turnOf("login", "call_0");
  for (let turn = 1; turn < 10_000; turn++) {
    messages.push(...turnOf(`mcp__server__tool_${String(turn)}`, `call_${String(turn)}`, turn % 2 > 0));
  }
  const seen = history.scan(messages);
  assert.ok(toBinary(v1.AgentStateSchema, seen.state()).length < 56 * 1024);
  assert.deepEqual([seen.turns, seen.calls.at(-1)?.tool], [10_000, "mcp__server__tool_9998"]);
  const polled = [...turnOf("login", "call_0")];
  for (let turn = 1; turn < 5_000; turn++)
    polled.push(...turnOf("poll", `call_${String(turn)}`, turn < 4_000));
  assert.deepEqual([history.scan(polled).calls[0]?.tool, history.scan(polled).calls[0]?.turn], ["login", 0]);
});

test("the state takes what a history can't say", () => {
  const state = history
    .scan(turnOf("search", "c"))
    .state({ scopes: ["repo"], milestones: ["planned"], attributes: { plan: "pro" } });
  assert.deepEqual(toJson(v1.AgentStateSchema, state), {
    scopes: ["repo"],
    milestones: ["planned"],
    attributes: { plan: "pro" },
    calls: [{ tool: "search", status: "CALL_STATUS_SUCCEEDED" }],
    discoveredTools: ["search"],
  });
});

test("a turn's rendered tools are read, and a turn without them says what to do", () => {
  const toolsJson = '[{"name":"a","input_schema":{"properties":{"__proto__":{"maximum":1e400}}}}]';
  const turn = create(v1.RouteResponseSchema, { rendered: { toolsJson } });
  const [first] = renderedTools<{ name: string; input_schema: object }>(turn);
  assert.equal(first?.name, "a");
  assert.match(JSON.stringify(first.input_schema), /"__proto__":\{"maximum":1\.79/);
  assert.equal(({} as Record<string, unknown>)["maximum"], undefined);
  assert.throws(() => renderedTools(create(v1.RouteResponseSchema)), {
    name: "TypeError",
    message: /set `render`/,
  });
});

test("a strategy's request is read, and a turn without one says what to do", () => {
  const rendered = {
    toolsJson: '[{"name":"own"}]',
    messagesJson: '[{"role":"user","content":"hello"}]',
    betas: ["b"],
    ledger: "{}",
    strategy: v1.PromptStrategy.ENVELOPE,
    reason: v1.StrategyReason.CHEAPEST,
    reasonMessage: "envelope, because",
  };
  const request = modelRequest<{ name: string }>(create(v1.RouteResponseSchema, { rendered }));
  assert.deepEqual(request.tools, [{ name: "own" }]);
  assert.deepEqual(request.messages, [{ role: "user", content: "hello" }]);
  const { betas, ledger, strategy, reason, reasonMessage } = request;
  assert.deepEqual([betas, ledger, strategy], [["b"], "{}", v1.PromptStrategy.ENVELOPE]);
  assert.deepEqual([reason, reasonMessage], [v1.StrategyReason.CHEAPEST, "envelope, because"]);
  for (const turn of [{}, { rendered: { toolsJson: "[]" } }]) {
    assert.throws(() => modelRequest(create(v1.RouteResponseSchema, turn)), {
      name: "TypeError",
      message: /set `render.strategy`/,
    });
  }
});

test("models that can't defer are known by parts of their names", () => {
  assert.equal(canDefer("claude-sonnet-4-5"), true);
  assert.equal(canDefer("claude-3-5-Haiku-20241022"), false);
  assert.equal(canDefer("my-proxy/sonnet", ["PROXY"]), false);
});

test("texts keep every digit of numbers beyond JavaScript's", () => {
  const text = '{"type":"object","properties":{"n":{"maximum":1e400,"minimum":-1e400,"const":1.50}}}';
  assert.ok(layout.phase2([tool(text)]).includes(text));
  const found = create(v1.SearchToolsResponseSchema, { tools: [tool(text)] });
  assert.ok(answerOf(found).text.includes(text));
});

test("calls are read in each provider's shape, arguments as they are written", () => {
  const read = [
    calls.fromAnthropic({ id: "1", name: "t", input: { a: "ö" } }),
    calls.fromOpenAI({ id: "2", function: { name: "t", arguments: '{"a": 1.50' } }),
    calls.fromOpenAIResponses({ call_id: "3", name: "t", arguments: "" }),
    calls.fromGemini({ name: "t", args: { a: "\ud800" } }),
    calls.fromGemini({ name: "t" }),
  ].map(({ callId, tool: name, argumentsJson }) => [callId, name, argumentsJson]);
  assert.deepEqual(read, [
    ["1", "t", '{"a":"ö"}'],
    ["2", "t", '{"a": 1.50'],
    ["3", "t", ""],
    ["", "t", '{"a":"\\ud800"}'],
    ["", "t", "{}"],
  ]);
});

test("preconditions are merged as they are combined", () => {
  const [a, b, c] = [isAuthenticated("a"), hasPriorToolOutput("b"), milestoneReached("c")];
  assert.deepEqual(toJson(v1.PreconditionSchema, allOf(allOf(a, b), not(anyOf(c, cel("true"))))), {
    all: {
      preconditions: [
        { isAuthenticated: "a" },
        { hasPriorToolOutput: "b" },
        { not: { any: { preconditions: [{ milestoneReached: "c" }, { cel: "true" }] } } },
      ],
    },
  });
  assert.equal(not(not(a)), a);
  assert.throws(() => allOf(), /at least one precondition/);
  assert.throws(() => isAuthenticated(""), /isAuthenticated needs a text/);
});

test("a refusal says what it says and no more", () => {
  const refused = create(v1.GateVerdictSchema, {
    code: v1.RefusalCode.ARGUMENTS_INVALID,
    message: "No.",
    violations: [{ pointer: "/a", message: "is missing" }],
    inputSchemaJson: '{"type":"object"}',
  });
  assert.deepEqual(toToolError(refused), {
    error: "arguments_invalid",
    message: "No.",
    violations: [{ pointer: "/a", message: "is missing" }],
    input_schema: { type: "object" },
  });
  const unknown = create(v1.GateVerdictSchema, { code: v1.RefusalCode.UNKNOWN_TOOL, message: "No." });
  assert.deepEqual(toToolError(unknown), { error: "unknown_tool", message: "No.", available: [] });
  const ofLaterVersion = fromBinary(v1.GateVerdictSchema, new Uint8Array([0x28, 99]));
  assert.equal(toToolError(ofLaterVersion).error, "unspecified");
  assert.throws(() => toToolError(create(v1.GateVerdictSchema, { allowed: true })), /no error/);
});

test("a change of the pool leaves what was held alone, and puts changed lines last", () => {
  const held = new Map([
    ["a", "1"],
    ["b", "2"],
    ["c", "3"],
  ]);
  const delta = create(v1.SummaryPoolDeltaSchema, {
    removed: ["b"],
    added: [
      { modelName: "a", summary: "new" },
      { modelName: "d", summary: "4" },
    ],
  });
  assert.deepEqual(
    [...applyPool(delta, held)],
    [
      ["c", "3"],
      ["a", "new"],
      ["d", "4"],
    ],
  );
  assert.deepEqual(
    [...applyPool({ ...delta, full: true }, held)],
    [
      ["a", "new"],
      ["d", "4"],
    ],
  );
  assert.deepEqual([...applyPool(undefined, held)], [...held]);
  assert.equal(held.size, 3);
});

test("what a search found is told as references, or whole; the search itself can't be changed", () => {
  const found = create(v1.SearchToolsResponseSchema, { tools: [tool('{"type":"object"}')] });
  assert.deepEqual(toToolReferences(found), [{ type: "tool_reference", tool_name: "mcp__a__b" }]);
  assert.deepEqual(toToolResult(found), JSON.parse(answerOf(found).text));
  assert.throws(() => {
    SEARCH_TOOL.description = "other";
  }, TypeError);
});
