/** Tests what is told of the model: its API, its name, and where it is asked. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI as createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { ChatAnthropic } from "@langchain/anthropic";
import { ChatGoogleGenerativeAI } from "@langchain/google-genai";
import { ChatOpenAI } from "@langchain/openai";
import { wrapLanguageModel } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { initChatModel } from "langchain";

import { endpointOf as ofAi } from "../../src/ai/endpoint.js";
import { baseUrlOf, isOwnHost, modelNameOf, priceOf, ratesOf } from "../../src/endpoint.js";
import { endpointOf as ofLangChain } from "../../src/langchain/endpoint.js";

const apiKey = "none";
const CLAUDE = "claude-opus-5-5";
const GPT = "gpt-6.1";
const GEMINI = "gemini-3.5-flash";
const LOCAL = "http://127.0.0.1:4000/v1";

test("the AI SDK's own providers say their API and base URL", () => {
  const anthropic = { api: "anthropic", model: CLAUDE };
  assert.deepEqual(ofAi(createAnthropic({ apiKey })(CLAUDE)), {
    ...{ ...anthropic, baseUrl: "https://api.anthropic.com/v1" },
    takesNative: true,
  });
  assert.deepEqual(ofAi(createAnthropic({ apiKey, baseURL: LOCAL })(CLAUDE)), {
    ...{ ...anthropic, baseUrl: LOCAL },
    takesNative: true,
  });
  const openai = { model: GPT, baseUrl: "https://api.openai.com/v1", takesNative: false };
  assert.deepEqual(ofAi(createOpenAI({ apiKey })(GPT)), { ...openai, api: "openai_responses" });
  assert.deepEqual(ofAi(createOpenAI({ apiKey }).chat(GPT)), { ...openai, api: "openai_chat" });
  assert.deepEqual(ofAi(createGoogle({ apiKey })(GEMINI)), {
    ...{ api: "gemini", model: GEMINI },
    ...{ baseUrl: "https://generativelanguage.googleapis.com/v1beta", takesNative: false },
  });
});

test("what can't be read is not told, and nothing that only the provider takes is sent there", () => {
  const model = wrapLanguageModel({
    model: createAnthropic({ apiKey })(CLAUDE),
    middleware: { specificationVersion: "v3" },
  });
  const wrapped = { api: "anthropic", model: CLAUDE, baseUrl: "", takesNative: false };
  assert.deepEqual(ofAi(model), wrapped);
  const said = "https://api.anthropic.com";
  assert.deepEqual(ofAi(model, said), { ...wrapped, baseUrl: said, takesNative: true });
  const unknown = { api: "openai_chat", baseUrl: "", takesNative: false };
  assert.deepEqual(ofAi(new MockLanguageModelV3()), { ...unknown, model: "mock-model-id" });
  assert.deepEqual(ofAi("openai/gpt-6.1"), { ...unknown, model: "openai/gpt-6.1" });
  assert.deepEqual(ofAi(undefined), { ...unknown, model: "" });
});

test("LangChain's models say theirs, also where they were given by name", async () => {
  const profiled = await ofLangChain(new ChatAnthropic({ model: "claude-opus-4-8", apiKey }));
  assert.equal(profiled.contextWindow, 1_000_000, "as its profile says");
  const claude = { api: "anthropic", model: CLAUDE, takesNative: true };
  assert.deepEqual(await ofLangChain(new ChatAnthropic({ model: CLAUDE, apiKey })), {
    ...claude,
    baseUrl: "",
  });
  const proxied = new ChatAnthropic({ model: CLAUDE, apiKey, anthropicApiUrl: LOCAL });
  assert.deepEqual(await ofLangChain(proxied), { ...claude, baseUrl: LOCAL });
  const createClient = () => {
    throw new Error("not asked");
  };
  const foreign = new ChatAnthropic({ model: CLAUDE, createClient });
  assert.deepEqual(await ofLangChain(foreign), { ...claude, baseUrl: "", takesNative: false });
  const named = await initChatModel(`anthropic:${CLAUDE}`, { apiKey });
  assert.deepEqual(await ofLangChain(named), { ...claude, baseUrl: "" });

  const chat = { api: "openai_chat", model: GPT, baseUrl: "", takesNative: false };
  assert.deepEqual(await ofLangChain(new ChatOpenAI({ model: GPT, apiKey })), chat);
  const local = new ChatOpenAI({ model: "qwen3", apiKey, configuration: { baseURL: LOCAL } });
  assert.deepEqual(await ofLangChain(local), { ...chat, model: "qwen3", baseUrl: LOCAL });
  const responses = { ...chat, api: "openai_responses", takesNative: true };
  assert.deepEqual(
    await ofLangChain(new ChatOpenAI({ model: GPT, apiKey, useResponsesApi: true })),
    responses,
  );

  const { api, model, takesNative } = await ofLangChain(
    new ChatGoogleGenerativeAI({ model: GEMINI, apiKey }),
  );
  assert.deepEqual({ api, model, takesNative }, { api: "gemini", model: GEMINI, takesNative: false });
});

test("a base URL is told without credentials and query, and what is none is not told", () => {
  assert.equal(
    baseUrlOf("https://me:secret@proxy.example:8443/v1/?key=secret"),
    "https://proxy.example:8443/v1",
  );
  for (const none of ["", "proxy", undefined, 7, `https://proxy.example/${"a".repeat(2048)}`]) {
    assert.equal(baseUrlOf(none), undefined);
  }
  assert.equal(modelNameOf("a".repeat(257)), "");
});

test("a provider's own hosts are those of its domains", () => {
  const own = [
    "https://api.openai.com/v1",
    "https://me.openai.azure.com",
    "https://generativelanguage.googleapis.com",
  ];
  for (const url of own) assert.equal(isOwnHost(url), true, url);
  const others = ["", "proxy", LOCAL, "https://api.openai.com.example", "https://notapi.anthropic.com"];
  for (const url of others) assert.equal(isOwnHost(url), false, url);
});

test("prices are those of the service", () => {
  const openai = { write: 1, read: 0.1, least: 1024, step: 128 };
  for (const model of ["gpt-5.5", "gpt-4o", "gpt-5-mini"]) {
    assert.deepEqual(ratesOf({ api: "openai_chat", model }), openai, model);
  }
  for (const model of ["gpt-5.6-terra", "GPT-6", "gpt-10", "openai/gpt-5.12"]) {
    assert.deepEqual(ratesOf({ api: "openai_responses", model }), { ...openai, write: 1.25 }, model);
  }
  assert.deepEqual(ratesOf({ api: "openai_responses", model: "o3" }), openai);
  assert.equal(ratesOf({ api: "openai_chat", model: "qwen3-coder" }), undefined);
  assert.equal(ratesOf({ api: "gemini", model: "gemini-2.5-pro" })?.least, 2048);
  assert.equal(ratesOf({ api: "gemini", model: GEMINI })?.least, 4096);
  for (const [model, least] of [
    ["claude-opus-4-8", 1024],
    ["claude-opus-5-20260724", 512],
    ["claude-opus-4-7", 2048],
    ["claude-sonnet-4-6", 2048],
    ["claude-3-5-haiku-latest", 2048],
    ["Claude-Haiku-4-5-20251001", 4096],
  ] as const) {
    assert.equal(ratesOf({ api: "anthropic", model })?.least, least, model);
  }
  const anthropic = ratesOf({ api: "anthropic", model: "claude-opus-4-8" });
  assert.ok(anthropic !== undefined);
  const prices = [
    [anthropic, 1_000, 900, 1_000],
    [anthropic, 2_000, 0, 2_500],
    [anthropic, 2_000, 1_000, 2_500],
    [anthropic, 2_000, 1_500, 775],
    [openai, 2_000, 1_200, 963.2],
  ] as const;
  for (const [rates, tokens, shared, price] of prices) {
    assert.ok(Math.abs(priceOf(rates, tokens, shared) - price) < 1e-9, String(price));
  }
});
