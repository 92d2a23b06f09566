/** The rules that reports price prompts by, held to those of the service. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

import type { Api } from "@toolgate/client";

import { type Rates, ratesOf } from "../../src/endpoint.js";

const MODELS: readonly (readonly [Api, string])[] = [
  ["anthropic", ""],
  ["anthropic", "claude-opus-4-8"],
  ["anthropic", "claude-opus-4-6"],
  ["anthropic", "Claude-Haiku-4-5-20251001"],
  ["anthropic", "claude-sonnet-4-6"],
  ["anthropic", "claude-3-5-haiku-latest"],
  ["openai_responses", ""],
  ["openai_responses", "o3"],
  ["openai_responses", "gpt-5.5"],
  ["openai_responses", "GPT-5.6-terra"],
  ["openai_responses", "openai/gpt-5.12"],
  ["openai_chat", "gpt-4o"],
  ["openai_chat", "gpt-6.1"],
  ["gemini", ""],
  ["gemini", "models/gemini-2.5-pro"],
  ["gemini", "gemini-3-pro"],
];

for (const [api, model] of MODELS) {
  test(`a report prices ${api} ${model} as the service does`, () => {
    const { TOOLGATE_BIN: binary } = process.env;
    assert.ok(binary, "name a binary with TOOLGATE_BIN");
    const asked = ["bench", "prices", "--json", "--api", api, "--model", model];
    const [rule] = JSON.parse(execFileSync(binary, asked, { encoding: "utf8", timeout: 60_000 })) as [Rates];
    const { write, read, least, step } = rule;
    assert.deepEqual(ratesOf({ api, model }), { write, read, least, step });
  });
}
