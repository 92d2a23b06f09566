/** The helpers beyond the conformance cases: bounds, odd content, and what JavaScript makes of JSON. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { create, fromBinary, toJson } from "@bufbuild/protobuf";

import {
  agentState,
  allOf,
  anyOf,
  applyPool,
  calls,
  canDefer,
  cel,
  type ConversationState,
  hasPriorToolOutput,
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

const snapshot = '{"type":"toolgate_snapshot","version":1,"turns":1,"discovered":[],"calls":[]}';

test("a conversation is its snapshot, then its messages", () => {
  const said = { role: "user", content: "hello" };
  for (const [given, messagesJson] of [
    [{}, ""],
    [{ snapshot: "" }, ""],
    [{ messages: [] }, "[]"],
    [{ messages: new Set([said]) }, '[{"role":"user","content":"hello"}]'],
    [{ snapshot }, `[${snapshot}]`],
    [{ snapshot: JSON.parse(snapshot) as object, messages: [] }, `[${snapshot}]`],
    [{ snapshot, messages: [said] }, `[${snapshot},{"role":"user","content":"hello"}]`],
  ] as [ConversationState, string][]) {
    assert.equal(agentState(given).messagesJson, messagesJson);
  }
});

test("what is no conversation is refused", () => {
  for (const given of [{ messages: "[]" }, { messages: {} }, { messages: 7 }, { messages: null }]) {
    assert.throws(() => agentState(given as never), { name: "TypeError", message: /^messages: / });
  }
  for (const wrong of ["{", "[]", "null", [], 7]) {
    assert.throws(() => agentState({ snapshot: wrong } as never), {
      name: "TypeError",
      message: /^snapshot: /,
    });
  }
});

test("half a character is replaced, since only JavaScript reads it", () => {
  const { messagesJson } = agentState({ messages: ["a\ud800b", "\\ud800", "\u{1f600}", "\\\ud800"] });
  assert.deepEqual(JSON.parse(messagesJson), ["a\ufffdb", "\\ud800", "\u{1f600}", "\\\ufffd"]);
  assert.ok(!messagesJson.replaceAll("\\\\", "").includes("\\ud8"));
});

test("the state takes what a conversation can't say", () => {
  const given = { scopes: ["repo"], milestones: ["planned"], attributes: { plan: "pro" } };
  assert.deepEqual(toJson(v1.AgentStateSchema, agentState(given)), given);
  assert.deepEqual(agentState({ ...given, snapshot }).scopes, ["repo"]);
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
