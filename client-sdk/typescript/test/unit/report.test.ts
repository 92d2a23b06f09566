/** Costs of a conversation, folded from what Route answers. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { create } from "@bufbuild/protobuf";

import { ContextWarning, PromptStrategy, RouteResponseSchema } from "../../src/gen/toolgate/v1/router_pb.js";
import { SEARCH_TOOL } from "../../src/offering.js";
import { reportOf, type Spent, spentAfter } from "../../src/report.js";

const endpoint = { api: "anthropic", model: "claude-opus-5-5", baseUrl: "", takesNative: true } as const;

const FIND = "mcp__notes__find";
const READ = "mcp__notes__read";

/** A request that is sent as Route put it together. */
interface Request {
  /** Tokens of the active set by its tools. */
  readonly active: Readonly<Record<string, number>>;
  readonly said: number;
  readonly messages: readonly string[];
  readonly tools?: readonly string[];
  readonly phases?: readonly [number, number];
  readonly own?: number;
}

function after(before: Spent | undefined, accounting: object): Spent {
  const turn = create(RouteResponseSchema, { accounting });
  return spentAfter(before, turn, { active: [], prompt: undefined, endpoint });
}

function turnOf({ active, said, messages, tools = [FIND], phases }: Request) {
  const tokens = Object.values(active).reduce((sum, one) => sum + one, 0);
  const [phase1, phase2] = phases ?? [0, tokens];
  return create(RouteResponseSchema, {
    activeTools: Object.entries(active).map(([modelName, schemaTokens]) => ({ modelName, schemaTokens })),
    accounting: {
      fullCatalogTokens: 10_000n,
      phase1Tokens: BigInt(phase1),
      phase2Tokens: BigInt(phase2),
      conversationTokens: BigInt(said),
    },
    rendered: {
      toolsJson: JSON.stringify(tools.map((name) => ({ name }))),
      messagesJson: JSON.stringify(messages.map((content) => ({ role: "user", content }))),
      strategy: PromptStrategy.NATIVE,
    },
  });
}

function next(before: Spent | undefined, request: Request): Spent {
  const kept = before === undefined ? undefined : (JSON.parse(JSON.stringify(before)) as Spent);
  const { active, own = 0 } = request;
  const sent = { active: Object.keys(active), prompt: undefined, own, endpoint };
  return spentAfter(kept, turnOf(request), sent);
}

/** The price of a request after another, of which a part is cached. */
function priceOf(first: number, tokens: number, shared: number): number {
  return Math.round(first * 1.25 + shared * 0.1 + (tokens - shared) * 1.25);
}

test("utilisation is that of the last request, beside the highest", () => {
  const untold = after(undefined, {});
  assert.equal("rho" in reportOf(untold), false, "Route was told no messages");
  const second = after(after(untold, { conversationRho: 0.71 }), { conversationRho: 0.5 });
  const { rho, highestRho, isWindowNearlyFull } = reportOf(JSON.parse(JSON.stringify(second)) as Spent);
  assert.deepEqual([rho, highestRho, isWindowNearlyFull], [0.5, 0.71, false]);
  const full = reportOf(after(second, { warnings: [ContextWarning.WINDOW_NEARLY_FULL] }));
  assert.deepEqual([full.rho, full.highestRho, full.isWindowNearlyFull], [undefined, 0.71, true]);
});

test("prices are those of the provider, beside the alternatives", () => {
  const first = next(undefined, { active: { [FIND]: 200 }, said: 2_000, messages: ["a"] });
  const second = next(first, {
    ...{ active: { [READ]: 300 }, said: 2_500, messages: ["a", "b", "added"], phases: [0, 500] },
  });
  const { shownTokens, savedTokens, keptPrefixes, price } = reportOf(second);
  assert.deepEqual([shownTokens, savedTokens, keptPrefixes], [200 + 500, 20_000 - 700, 1]);
  assert.deepEqual(price, {
    sent: priceOf(2_200, 3_000, 2_200),
    allTools: priceOf(12_000, 12_500, 12_000),
    routedAnew: priceOf(2_200, 2_800, 0),
  });
});

test("tools are what Route says of the whole request", () => {
  const request = { active: { [FIND]: 200 }, said: 2_000, messages: ["a"] };
  const first = next(undefined, { ...request, phases: [480, 200] });
  const { shownTokens, price } = reportOf(next(first, { ...request, phases: [480, 700] }));
  assert.equal(shownTokens, 680 + 1_180, "the search lists what it finds");
  assert.equal(price?.routedAnew, priceOf(2_200, 2_200, 2_200), "tools of earlier turns are not in it");
  const active = [SEARCH_TOOL.modelName, FIND];
  const turn = turnOf({ ...request, phases: [480, 700] });
  const cut = spentAfter(undefined, turn, { active, prompt: undefined, endpoint });
  assert.equal(reportOf(cut).shownTokens, SEARCH_TOOL.schemaTokens + 200);
  const prompt = { ledger: "", tools: [{ name: FIND }], added: {} };
  const whole = spentAfter(undefined, turn, { active, prompt, endpoint });
  assert.equal(reportOf(whole).shownTokens, 1_180);
});

test("what two requests begin with is cached message by message", () => {
  const said = Array.from({ length: 10 }, (_, at) => `0${String(at)}`);
  const first = next(undefined, { active: { [FIND]: 1_000 }, said: 10_000, messages: said });
  // Additions are dropped from a message near the end.
  const less = [...said.slice(0, 8), "xx", "09", "10"];
  const cases: [string[], string[], number][] = [
    [[FIND], [...said, "10"], 11_000],
    [[FIND], less, 1_000 + 8_000],
    [[FIND], said.slice(1), 1_000],
    [[FIND], said.slice(0, 5), 1_000 + 5_000],
    [[FIND, READ], said, 1_000],
    [[READ, FIND], said, 0],
  ];
  for (const [tools, messages, shared] of cases) {
    const active = Object.fromEntries(tools.map((name) => [name, 1_000]));
    const { price } = reportOf(next(first, { active, said: 10_000, messages, tools }));
    const tokens = 1_000 * tools.length + 10_000;
    assert.equal(price?.sent, priceOf(11_000, tokens, shared), JSON.stringify([tools, messages]));
  }
});

test("of a long conversation the newest messages are compared one by one", () => {
  const said = Array.from({ length: 100 }, (_, at) => String(at).padStart(3, "0"));
  const first = next(undefined, { active: { [FIND]: 1_000 }, said: 10_000, messages: said });
  assert.equal(first.last?.messages.length, 65, "what is kept stays small");
  for (const [at, shared] of [
    [99, 10_900],
    [36, 4_600],
    [35, 1_000],
  ] as const) {
    const messages = said.with(at, "x");
    const { price } = reportOf(next(first, { active: { [FIND]: 1_000 }, said: 10_000, messages }));
    assert.equal(price?.sent, priceOf(11_000, 11_000, shared), String(at));
  }
});

test("a report without a price says why", () => {
  const unpriced = (before: Spent | undefined, model: string): Spent => {
    const asked = { ...endpoint, api: "openai_chat", model } as const;
    return spentAfter(before, turnOf({ active: {}, said: 0, messages: [] }), {
      ...{ active: [], prompt: undefined, endpoint: asked },
    });
  };
  assert.equal(reportOf().unpriced, undefined, "nothing was asked yet");
  const local = unpriced(undefined, "llama-4");
  const kept = JSON.parse(JSON.stringify(unpriced(local, ""))) as Spent;
  const report = reportOf(next(kept, { active: {}, said: 0, messages: [] }));
  assert.equal(report.price, undefined, "a part of the conversation has none");
  assert.match(report.unpriced ?? "", /^how llama-4 caches is not known behind Chat Completions/);
  assert.equal(reportOf(unpriced(undefined, "")).unpriced, "nothing says which model is asked");
  const priced = reportOf(next(undefined, { active: {}, said: 0, messages: [] }));
  assert.equal(priced.unpriced, undefined);
});

test("alternatives are priced in the API's form", () => {
  for (const strategy of [PromptStrategy.CUT, PromptStrategy.PASS]) {
    let spent: Spent | undefined;
    for (let count = 0; count < 2; count += 1) {
      const turn = turnOf({ active: { [FIND]: 4_200 }, said: 50, messages: ["a"], phases: [0, 3_700] });
      if (turn.rendered !== undefined) turn.rendered.strategy = strategy;
      if (turn.accounting !== undefined) turn.accounting.fullCatalogTokens = 4_200n;
      const gemini = { ...endpoint, api: "gemini", model: "gemini-3-pro" } as const;
      spent = spentAfter(spent, turn, { active: [FIND], prompt: undefined, own: 0, endpoint: gemini });
    }
    const { catalogTokens, shownTokens, price } = reportOf(spent);
    assert.deepEqual([catalogTokens, shownTokens], [2 * 4_200, 2 * 3_700]);
    const prices = { sent: 7_500, allTools: 7_500, routedAnew: 7_500 };
    assert.deepEqual(price, prices, "none of them is long enough to be cached");
  }
});

test("definitions are no longer than Route says", () => {
  const request = { active: { [FIND]: 4_200 }, phases: [0, 3_700] } as const;
  const first = next(undefined, { ...request, said: 1_000, messages: ["a"] });
  const { price } = reportOf(next(first, { ...request, said: 1_500, messages: ["a", "b"] }));
  assert.equal(price?.sent, priceOf(4_700, 5_200, 4_700));
});

test("the agent's own definitions are a part of the beginning, without a price", () => {
  const request = { active: { [FIND]: 1_000 }, said: 1_000, messages: ["a"], own: 1 };
  const first = next(undefined, { ...request, tools: ["clock", FIND] });
  for (const [own, shared] of [
    ["clock", 2_000],
    ["date", 0],
  ] as const) {
    const { price } = reportOf(next(first, { ...request, tools: [own, FIND] }));
    assert.equal(price?.sent, priceOf(2_000, 2_000, shared), own);
  }
});

test("what an older version kept is gone on with", () => {
  const first = next(undefined, { active: { [FIND]: 200 }, said: 2_000, messages: ["a"] });
  const last = { defined: [[FIND, 200]], added: 0, messages: 2_000, catalog: 1, active: [], routed: 0 };
  const older = { ...first, last } as unknown as Spent;
  const { requests, shownTokens } = reportOf(
    next(older, { active: { [FIND]: 200 }, said: 2_000, messages: ["a"] }),
  );
  assert.deepEqual([requests, shownTokens], [2, 400]);
});
