/** What the middleware of frameworks tells Route of the prompt. */
import assert from "node:assert/strict";
import { test } from "node:test";

import type { ModelMessage } from "ai";

import { ToolgateConversation, type ToolgateOptions } from "../../src/ai/index.js";
import { estimatedTokens } from "../../src/middleware.js";
import { Client, v1 } from "../../src/node.js";
import { Fake } from "../fake.js";

const asked: ModelMessage = { role: "user", content: "the weather in Oslo?" };
const answered: ModelMessage[] = [
  asked,
  {
    role: "assistant",
    content: [{ type: "tool-call", toolCallId: "1", toolName: "mcp__a__b", input: { city: "Oslo" } }],
  },
  {
    role: "tool",
    content: [
      {
        type: "tool-result",
        toolCallId: "1",
        toolName: "mcp__a__b",
        output: { type: "text", value: "rain" },
      },
    ],
  },
];

/** What Route is asked in one step after these messages. */
async function told(messages: ModelMessage[], options: ToolgateOptions): Promise<v1.RouteRequest> {
  const requests: v1.RouteRequest[] = [];
  const route = (request: v1.RouteRequest) => {
    requests.push(request);
    return {};
  };
  await using service = await Fake.http2({ router: { route } });
  await using client = new Client(service.target, { tenant: "acme" });
  await new ToolgateConversation(client, {}, options).prepareStep({ messages });
  const [request] = requests;
  assert.ok(request !== undefined);
  return request;
}

test("Route is told what stands behind the tools, and that the prompt lists nothing beside them", async () => {
  const first = await told([asked], {});
  assert.equal(first.promptListing, v1.PromptListing.NONE);
  assert.equal(first.options?.historyTokens, 20 / 4);
  const later = await told(answered, {});
  // The message, the call's name and arguments, and the result.
  assert.equal(later.options?.historyTokens, Math.floor((20 + 9 + 15 + 4) / 4));
});

test("a count of one's own or none is told, and what the caller says for every step stands", async () => {
  assert.equal((await told([asked], { countTokens: () => 7 })).options?.historyTokens, 7);
  assert.equal((await told([asked], { countTokens: false })).options?.historyTokens, undefined);
  const route = { promptListing: v1.PromptListing.NAMES, options: { historyTokens: 0, topK: 3 } };
  const said = await told([asked], { route });
  assert.equal(said.options?.historyTokens, 0);
  assert.equal(said.options.topK, 3);
  assert.equal(said.promptListing, v1.PromptListing.NAMES);
});

test("four bytes of text are a token, and no message is not nothing", () => {
  assert.equal(estimatedTokens(["größer", "ab"]), 2);
  assert.equal(estimatedTokens([]), 1);
});
