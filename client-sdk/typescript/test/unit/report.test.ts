/** Costs of a conversation, folded from what Route answers. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { create } from "@bufbuild/protobuf";

import { ContextWarning, RouteResponseSchema } from "../../src/gen/toolgate/v1/router_pb.js";
import { reportOf, type Spent, spentAfter } from "../../src/report.js";

const endpoint = { api: "anthropic", model: "claude-opus-5-5", baseUrl: "", takesNative: true } as const;

function after(before: Spent | undefined, accounting: object): Spent {
  const turn = create(RouteResponseSchema, { accounting });
  return spentAfter(before, turn, { active: [], prompt: undefined, endpoint });
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
