/** Targets, options and credentials: what is refused before anything is sent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";

import { Client as WebClient } from "../../src/index.js";
import { Client, type ClientOptions } from "../../src/node.js";
import { readTarget } from "../../src/target.js";

const good: [string, string, boolean][] = [
  ["127.0.0.1:7070", "http://127.0.0.1:7070", true],
  ["localhost:1", "http://localhost:1", true],
  ["[::1]:7070", "http://[::1]:7070", true],
  ["http://tools.internal:80", "http://tools.internal:80", false],
  ["http://tools.internal:80/", "http://tools.internal:80", false],
  ["https://tools.example.com:443", "https://tools.example.com:443", false],
  ["127.0.0.1.example.com:443", "http://127.0.0.1.example.com:443", false],
];

for (const [given, baseUrl, loopback] of good) {
  test(`${given} is a target`, () => {
    const target = readTarget(given, false);
    assert.deepEqual([target.baseUrl, target.loopback], [baseUrl, loopback]);
    assert.equal(target.encrypted, baseUrl.startsWith("https"));
  });
}

const bad = [
  ...["", "7070", "localhost", "localhost:", "localhost:0", "localhost:65536", "localhost:x"],
  ...["localhost:7070/api", "http://localhost:7070/api", "https://localhost", "ftp://localhost:1"],
  ...["user@localhost:7070", "localhost:7070?x", "local host:7070", "::1:7070", "localhost:7070\n"],
];

for (const given of bad) {
  test(`${JSON.stringify(given)} is none, and the error says what would be`, () => {
    assert.throws(() => new Client(given), { name: "TypeError", message: /say host:port, such as 127/ });
    assert.throws(() => new WebClient(given), { name: "TypeError", message: /say host:port/ });
  });
}

const refused: [string, string, ClientOptions, RegExp][] = [
  ["both kinds of credentials", "h:1", { apiKey: "s3cret", token: () => "s3cret" }, /not both/],
  ["a key in the open", "h:1", { apiKey: "s3cret" }, /unencrypted to h:1/],
  ["a token in the open", "http://h:1", { token: () => "s3cret" }, /unencrypted/],
  ["a key with a line break", "localhost:1", { apiKey: "s3cret\n" }, /visible ASCII/],
  ["an empty key", "localhost:1", { apiKey: "" }, /visible ASCII/],
  ["a token that is no function", "localhost:1", { token: "s3cret" as never }, /must be a function/],
  ["TLS settings for http", "http://h:1", { tls: {} }, /asks for no encryption/],
  ["a certificate without its key", "https://h:1", { tls: { cert: "c" } }, /both `cert` and `key`/],
  ["no deadline", "h:1", { timeoutMs: 0 }, /timeoutMs: must be above 0/],
  ["a deadline that is no number", "h:1", { timeoutMs: NaN }, /timeoutMs/],
  ["a misspelt option", "h:1", { tenent: "x" } as never, /no such option: tenent/],
  ["another protocol", "h:1", { protocol: "rest" as never }, /protocol: "rest"/],
];

for (const [name, target, options, message] of refused) {
  test(`${name} is refused`, () => {
    assert.throws(
      () => new Client(target, options),
      (error: Error) => {
        assert.equal(error.name, "TypeError");
        assert.match(error.message, message);
        assert.doesNotMatch(inspect(error), /s3cret/);
        return true;
      },
    );
  });
}

test("credentials may travel encrypted, on this machine, or where the caller says so", () => {
  const accepted: [string, ClientOptions][] = [
    ["https://h:1", {}],
    ["h:1", { tls: {} }],
    ["[::1]:1", {}],
    ["127.9.9.9:1", {}],
    ["h:1", { allowInsecureCredentials: true }],
  ];
  for (const [target, options] of accepted) {
    new Client(target, { ...options, apiKey: "s3cret" }).close();
  }
});

test("a client's string form holds no secret", () => {
  const client = new Client("localhost:1", { apiKey: "s3cret" });
  assert.doesNotMatch(inspect(client, { depth: 10, showHidden: true }) + JSON.stringify(client), /s3cret/);
  client.close();
});

test("over fetch, gRPC and TLS settings are refused", () => {
  assert.throws(
    () => new WebClient("h:1", { protocol: "grpc" }),
    /not to be had here, but grpc-web, connect/,
  );
  assert.throws(() => new WebClient("https://h:1", { tls: {} }), /only Node's client/);
});
