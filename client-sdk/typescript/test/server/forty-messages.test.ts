/** The provider's cache over forty messages, with an agent of each integration (A7, A21), against a service. */
import { test } from "node:test";

import { type Api, Client } from "@toolgate/client";

import {
  checkDefault,
  checkEnvelope,
  checkNative,
  checkRight,
  DESK,
  Model,
  WORDS,
} from "./forty-messages.js";
import { freshTenant, Service } from "./service.js";
import { APIS, type Strategy, strategiesOf, TALKS } from "./talks.js";

/** An API whose requests can carry tools amid a conversation where the library has it, and one whose requests can't. */
const CHOSEN: Readonly<Record<string, readonly Api[]>> = {
  LangChain: ["anthropic"],
  LangGraph: ["openai_chat"],
  "the AI SDK": ["anthropic", "openai_chat"],
  "the Agents SDK": ["openai_responses", "openai_chat"],
  "a loop of one's own": ["openai_responses", "openai_chat"],
};

/** A tenant for all talks: what they register and ask for is embedded once. */
const tenant = freshTenant();

for (const [name, talk] of TALKS) {
  for (const api of CHOSEN[name] ?? []) {
    const isNative = strategiesOf(name, api).includes("native");
    const strategy: Strategy = isNative ? "native" : "envelope";
    test(`over forty turns of ${name} for ${api}, ${strategy} and the default keep the prefix`, async () => {
      await using service = await Service.get();
      await using client = new Client(service.target, { tenant, timeoutMs: 30_000 });
      const [chosen, byDefault] = [new Model(), new Model()];
      await talk(client, api, WORDS, { strategy }, APIS[api](...chosen.script).fetch, DESK);
      (isNative ? checkNative : checkEnvelope)(chosen.requests);
      checkRight(chosen.requests);
      await talk(client, api, WORDS, {}, APIS[api](...byDefault.script).fetch, DESK);
      checkDefault(byDefault.requests);
    });
  }
}
