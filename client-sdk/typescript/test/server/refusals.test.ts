/** Refusals in the messages of each integration, counted by what became of them (A22), against a service. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, v1 } from "@toolgate/client";

import type { Line } from "./anthropic-api.js";
import { freshTenant, Service } from "./service.js";
import { APIS, type Strategy, TALKS } from "./talks.js";

const FIND = "mcp__notes__find_notes";
const WRONG: Line = [FIND, { text: 7 }];
/** A refusal that a later call mends, one that the user is asked about, one that is given up; the last message has it counted. */
const TURNS: Readonly<Record<string, readonly Line[]>> = {
  "Find the note about milk.": [WRONG, [FIND, { text: "milk" }], "One."],
  "And the other note?": [WRONG, "Which one do you mean?"],
  "The note about bread.": [WRONG, "That did not work."],
  "Thank you.": ["You are welcome."],
};
for (const [name, talk, apis] of TALKS) {
  for (const api of apis) {
    for (const strategy of ["cut", "envelope"] as const) {
      test(`refusals are counted as ${name} writes them for ${api} with ${strategy}`, async () => {
        await using service = await Service.get();
        await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
        const script = Object.values(TURNS)
          .flat()
          .map((line) => written(line, strategy));
        const options = {
          strategy,
          route: { options: { pinnedTools: ["notes/find_notes"], deferral: v1.DeferralMode.ALWAYS } },
        };
        await talk(client, api, Object.keys(TURNS), options, APIS[api](...script).fetch);
        const { refusals, refusalOutcomes: outcomes } = await client.getUsage();
        assert.deepEqual(
          refusals.map(({ code, calls }) => [code, calls]),
          [[v1.RefusalCode.ARGUMENTS_INVALID, 3n]],
        );
        assert.deepEqual([outcomes?.mendedCalls, outcomes?.askedCalls, outcomes?.givenUpCalls], [1n, 1n, 1n]);
      });
    }
  }
}

/** A line as the model writes it: with an envelope its calls are in it. */
function written(line: Line, strategy: Strategy): Line {
  if (typeof line === "string" || strategy === "cut") return line;
  return ["toolgate_call_tool", { name: line[0], arguments: line[1] }];
}
