/** Refusals in the messages of each integration, counted by what became of them (A22), against a service. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, v1 } from "@toolgate/client";

import type { Line, Reply } from "./anthropic-api.js";
import { freshTenant, Service } from "./service.js";
import {
  APIS,
  type Desk,
  enveloped,
  LARGE,
  LONG,
  type Options,
  SMALL,
  strategiesOf,
  TALKS,
} from "./talks.js";

const FIND = "mcp__notes__find_notes";
const WRONG: Line = [FIND, { text: 7 }];
const ASKED = "Find the note about milk.";
/** A refusal that a later call mends, one that the user is asked about, one that is given up; the last message has it counted. */
const TURNS: Readonly<Record<string, readonly Line[]>> = {
  [ASKED]: [WRONG, [FIND, { text: "milk" }], "One."],
  "And the other note by a word in its text?": [WRONG, "Which one do you mean?"],
  "Find the note about bread.": [WRONG, "That did not work."],
  "Thank you.": ["You are welcome."],
};
/** Our search, and the type of it where the model's own form of a search asks us. */
const SEARCHES = ['"toolgate_search_tools"', '"tool_search"'];
const ALWAYS = { options: { pinnedTools: ["notes/find_notes"], deferral: v1.DeferralMode.ALWAYS } };

for (const [name, talk, apis] of TALKS) {
  for (const api of apis) {
    const chosen = strategiesOf(name, api).map((strategy): [string, Options, Desk, string] => {
      return [strategy, { strategy, route: ALWAYS }, SMALL, ASKED];
    });
    for (const [how, options, desk, first] of [
      ...chosen,
      ["the defaults", {}, LARGE, `${ASKED} ${LONG}`] as const,
    ]) {
      test(`refusals are counted as ${name} writes them for ${api} with ${how}`, async () => {
        await using service = await Service.get();
        await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
        const sent: string[] = [];
        const script = Object.values(TURNS)
          .flat()
          .map((line): Reply => (body) => {
            sent.push(JSON.stringify(body));
            return enveloped(line)(body);
          });
        const words = [first, ...Object.keys(TURNS).slice(1)];
        await talk(client, api, words, options, APIS[api](...script).fetch, desk);
        assert.equal(sent.length, script.length);
        for (const text of sent)
          assert.ok(
            SEARCHES.some((search) => text.includes(search)),
            "tools are deferred",
          );
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
