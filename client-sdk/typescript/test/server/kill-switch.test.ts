/** The operator's kill switch, thrown amid conversations of the integrations (B19). */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import { type Api, Client, v1 } from "@toolgate/client";

import { BETAS } from "./anthropic-api.js";
import { freshTenant, Service } from "./service.js";
import { APIS, type Fetch, LONG, strategiesOf, type Strategy, type Talk, TALKS } from "./talks.js";

/** Our search, and the type of it where the model's own form of a search asks us. */
const SEARCHES = ["toolgate_search_tools", '"tool_search"'];
const TRACES = [
  ...SEARCHES,
  "toolgate_call_tool",
  "[Toolgate]",
  "defer_loading",
  "tool_addition",
  "additional_tools",
];
const EVERY = ["mcp__notes__find_notes", "mcp__weather__forecast"];
/** The first is longer than each provider's cache needs. */
const WORDS = [`${LONG} Is there a note about milk?`, "Thank you."];

let service: Service;
before(async () => {
  service = await Service.own();
});
after(() => service[Symbol.asyncDispose]());

/** Throws the kill switch, or takes it back; it is so once this is done. */
async function throwSwitch(isOn: boolean): Promise<void> {
  await using probe = new Client(service.target, { tenant: freshTenant() });
  const toolsListJson = new TextEncoder().encode(
    JSON.stringify({ tools: [{ name: "find", inputSchema: {} }] }),
  );
  await probe.registerServer({ server: "notes", toolsListJson }, { timeoutMs: 60_000 });
  service.configure(`[deferral]\nkill_switch = ${String(isOn)}\n`);
  for (;;) {
    const { deferral } = await probe.route({ intents: [{ text: "x" }] });
    if ((deferral?.reason === v1.DeferralReason.KILL_SWITCH) === isOn) return;
    await pause(10);
  }
}

/** The requests of a conversation in which the switch is thrown with the first answer. */
async function requestsOf(talk: Talk, api: Api, strategy: Strategy): Promise<Request[]> {
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const { fetch } = APIS[api]("There is one.", "You are welcome.");
  const requests: Request[] = [];
  const thrown: Fetch = async (url, init) => {
    const request = url instanceof Request ? url.clone() : new Request(String(url), init);
    requests.push(request.clone());
    if (requests.length === 1) await throwSwitch(true);
    return await fetch(request, { body: await request.clone().text(), headers: request.headers });
  };
  const deferral = v1.DeferralMode.ALWAYS;
  await talk(client, api, WORDS, { strategy, route: { options: { topK: 1, deferral } } }, thrown);
  return requests;
}

for (const [name, talk, apis] of TALKS) {
  for (const api of apis) {
    for (const strategy of strategiesOf(name, api)) {
      test(`the switch leaves no trace of deferral in ${name} for ${api} with ${strategy}`, async () => {
        await throwSwitch(false);
        const [first, second, ...more] = await requestsOf(talk, api, strategy);
        assert.ok(first !== undefined && second !== undefined && more.length === 0);
        const before = await first.text();
        assert.ok(
          SEARCHES.some((search) => before.includes(search)),
          "tools were deferred before",
        );
        const sent = await second.text();
        assert.deepEqual(
          TRACES.filter((trace) => sent.includes(trace)),
          [],
        );
        assert.ok(EVERY.every((tool) => sent.includes(tool)));
        const betas = second.headers.get("anthropic-beta") ?? "";
        assert.ok(!BETAS.some((beta) => betas.includes(beta)));
      });
    }
  }
}
