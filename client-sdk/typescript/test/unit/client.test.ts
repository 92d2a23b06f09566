/** The client against a service in this process: requests, deadlines, retries, credentials, closing. */
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { test } from "node:test";

import { Code, ConnectError } from "@connectrpc/connect";

import { RetryInfoSchema } from "../../src/gen/google/rpc/error_details_pb.js";
import { Client, ToolgateError, v1 } from "../../src/node.js";
import { RetryBudget } from "../../src/retry.js";
import { Fake } from "../fake.js";

type Route = NonNullable<NonNullable<Parameters<typeof Fake.http2>[0]["router"]>["route"]>;

function failing(times: number, error: () => ConnectError): { route: Route; calls: () => number } {
  let calls = 0;
  const route: Route = () => {
    calls += 1;
    if (calls <= times) throw error();
    return {};
  };
  return { route, calls: () => calls };
}

function unavailable(): ConnectError {
  return new ConnectError("draining", Code.Unavailable);
}

async function failure(call: Promise<unknown>): Promise<ToolgateError> {
  const error: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ToolgateError, `a ToolgateError, not ${String(error)}`);
  return error;
}

test("the tenant is put into requests that have none, and the request is left alone", async () => {
  const seen: string[] = [];
  await using fake = await Fake.http2({
    router: {
      route: ({ tenant }) => {
        seen.push(tenant);
        return {};
      },
    },
  });
  await using client = new Client(fake.target, { tenant: "acme" });
  const request = { intents: [{ text: "x" }] };
  await client.route(request);
  await client.route({ tenant: "other" });
  assert.deepEqual(seen, ["acme", "other"]);
  assert.deepEqual(request, { intents: [{ text: "x" }] });
});

test("UNAVAILABLE is tried three times in all", async () => {
  const twice = failing(2, unavailable);
  await using fake = await Fake.http2({ router: { route: twice.route } });
  await using client = new Client(fake.target);
  await client.route({});
  assert.equal(twice.calls(), 3);
  const always = failing(99, unavailable);
  await using other = await Fake.http2({ router: { route: always.route } });
  await using second = new Client(other.target);
  const error = await failure(second.route({}));
  assert.deepEqual([error.code, error.detail, always.calls()], ["UNAVAILABLE", "draining", 3]);
});

test("nothing else is tried again", async () => {
  for (const code of [Code.ResourceExhausted, Code.Aborted, Code.Internal, Code.Unknown]) {
    const once = failing(1, () => new ConnectError("no", code));
    await using fake = await Fake.http2({ router: { route: once.route } });
    await using client = new Client(fake.target);
    await failure(client.route({}));
    assert.equal(once.calls(), 1);
  }
});

test("a pause is never shorter than the service asks for, nor past the deadline", async () => {
  const asked = (seconds: bigint) => () =>
    new ConnectError("wait", Code.Unavailable, undefined, [
      { desc: RetryInfoSchema, value: { retryDelay: { seconds, nanos: 300_000_000 } } },
    ]);
  const soon = failing(1, asked(0n));
  await using fake = await Fake.http2({ router: { route: soon.route } });
  await using client = new Client(fake.target);
  const begun = performance.now();
  await client.route({});
  assert.ok(performance.now() - begun >= 300);
  const late = failing(1, asked(60n));
  await using other = await Fake.http2({ router: { route: late.route } });
  await using second = new Client(other.target);
  const error = await failure(second.route({}));
  assert.deepEqual([error.code, error.retryAfter, late.calls()], ["UNAVAILABLE", 60.3, 1]);
});

test("each attempt is told the time that is left", async () => {
  const told: number[] = [];
  await using fake = await Fake.http2({
    router: {
      route: (_request, { requestHeader }) => {
        told.push(Number.parseInt(requestHeader.get("grpc-timeout") ?? "", 10));
        if (told.length === 1) throw unavailable();
        return {};
      },
    },
  });
  await using client = new Client(fake.target, { timeoutMs: 60_000 });
  await client.route({});
  const [first = 0, second = 0] = told;
  assert.equal(first, 60_000);
  assert.ok(second <= 59_920 && second > 30_000, String(second));
});

test("a call ends at its deadline, the client's or its own", async () => {
  await using fake = await Fake.http2({
    router: { route: (_request, { signal }) => pause(60_000, {}, { signal }) },
  });
  await using client = new Client(fake.target, { timeoutMs: 80 });
  const begun = performance.now();
  assert.equal((await failure(client.route({}))).code, "DEADLINE_EXCEEDED");
  assert.equal((await failure(client.route({}, { timeoutMs: 40 }))).code, "DEADLINE_EXCEEDED");
  assert.ok(performance.now() - begun < 50_000, "before the service answered");
  await assert.rejects(client.route({}, { timeoutMs: 0 }), { name: "TypeError" });
});

test("a signal ends a call that the service has not answered", async () => {
  const controller = new AbortController();
  await using fake = await Fake.http2({
    router: {
      route: (_request, { signal }) => {
        controller.abort();
        return pause(600_000, {}, { signal });
      },
    },
  });
  await using client = new Client(fake.target, { timeoutMs: 600_000 });
  assert.equal((await failure(client.route({}, { signal: controller.signal }))).code, "CANCELLED");
});

test("a signal ends a call, between its attempts too", async (t) => {
  const controller = new AbortController();
  const { setTimeout: start } = globalThis;
  // Aborts as the pause begins, however long the attempt took.
  t.mock.method(globalThis, "setTimeout", (act: () => void, milliseconds?: number) => {
    if (milliseconds === 60_000)
      queueMicrotask(() => {
        controller.abort();
      });
    return start(act, milliseconds);
  });
  const wait = { desc: RetryInfoSchema, value: { retryDelay: { seconds: 60n } } };
  const always = failing(99, () => new ConnectError("wait", Code.Unavailable, undefined, [wait]));
  await using fake = await Fake.http2({ router: { route: always.route } });
  await using client = new Client(fake.target, { timeoutMs: 600_000 });
  const error = await failure(client.route({}, { signal: controller.signal }));
  assert.deepEqual([error.code, always.calls()], ["CANCELLED", 1]);
});

test("failures beyond half of the budget stop retries, successes allow them again", () => {
  const budget = new RetryBudget();
  assert.deepEqual(
    Array.from({ length: 6 }, () => budget.failed()),
    [true, true, true, true, false, false],
  );
  for (let success = 0; success < 25; success++) budget.succeeded();
  assert.equal(budget.failed(), true);
});

test("all calls of a client share its budget", async () => {
  const always = failing(99, unavailable);
  await using fake = await Fake.http2({ router: { route: always.route } });
  await using client = new Client(fake.target);
  for (let call = 0; call < 4; call++) await failure(client.route({}));
  // Three attempts, then two, as the budget is half spent; from then on one.
  assert.equal(always.calls(), 3 + 2 + 1 + 1);
});

test("credentials are sent; a token is asked for before each call", async () => {
  const sent: (string | null)[] = [];
  const route: Route = (_request, { requestHeader }) => {
    sent.push(requestHeader.get("authorization"));
    return {};
  };
  await using fake = await Fake.http2({ router: { route } });
  await using keyed = new Client(fake.target, { apiKey: "key-1" });
  let asked = 0;
  await using rotating = new Client(fake.target, { token: () => Promise.resolve(`jwt-${String(++asked)}`) });
  await keyed.route({});
  await rotating.route({});
  await rotating.route({});
  assert.deepEqual(sent, ["Bearer key-1", "Bearer jwt-1", "Bearer jwt-2"]);
});

test("a token source that fails, or hangs, fails the call without its text", async () => {
  await using fake = await Fake.http2({ router: { route: () => ({}) } });
  await using failing = new Client(fake.target, { token: () => Promise.reject(new Error("s3cret")) });
  const error = await failure(failing.route({}));
  assert.equal(error.code, "UNAUTHENTICATED");
  assert.doesNotMatch(error.message, /s3cret/);
  await using odd = new Client(fake.target, { token: () => "two words" });
  assert.equal((await failure(odd.route({}))).code, "UNAUTHENTICATED");
  await using hanging = new Client(fake.target, { token: () => new Promise(() => 0), timeoutMs: 50 });
  assert.equal((await failure(hanging.route({}))).code, "DEADLINE_EXCEEDED");
});

test("a registration carries a fresh name, the same in all its attempts, and the bytes as given", async () => {
  const ids: string[] = [];
  const bodies: string[] = [];
  await using fake = await Fake.http2({
    catalog: {
      registerServer: ({ requestId, toolsListJson }) => {
        ids.push(requestId);
        bodies.push(new TextDecoder().decode(toolsListJson));
        if (ids.length === 1) throw unavailable();
        return {};
      },
    },
  });
  await using client = new Client(fake.target);
  const text = '{"tools": [ {"name": "a", "inputSchema": {"maximum": 1.50}} ]}';
  await client.registerServer({ server: "s", toolsListJson: text });
  await client.registerServer({ server: "s", toolsListJson: new TextEncoder().encode(text) });
  await client.registerServer({ server: "s", toolsListJson: { tools: [] }, requestId: "mine" });
  assert.equal(ids[0], ids[1]);
  assert.match(ids[0] ?? "", /^[0-9a-f]{32}$/);
  assert.notEqual(ids[1], ids[2]);
  assert.equal(ids[3], "mine");
  assert.deepEqual(bodies, [text, text, text, '{"tools":[]}']);
  await assert.rejects(client.registerServer({ server: "s", toolsListJson: "tools.json" }), /is a path/);
});

test("an approval carries what was reviewed, and tells what was not accepted", async () => {
  const asked: v1.ApproveToolsRequest[] = [];
  await using fake = await Fake.http2({
    catalog: {
      approveTools: (request) => {
        asked.push(request);
        if (asked.length === 1) throw unavailable();
        return { catalogRevision: 7n, refusals: [{ name: "moon", code: v1.RefusalCode.SCHEMA_CHANGED }] };
      },
    },
  });
  await using client = new Client(fake.target, { tenant: "acme" });
  const approvals = [
    { name: "tides", hash: "0f" },
    { name: "moon", hash: "f0" },
  ];
  const { catalogRevision, refusals } = await client.approveTools({ server: "sea", approvals });
  assert.deepEqual(
    [catalogRevision, refusals.map(({ name, code }) => [name, code])],
    [7n, [["moon", v1.RefusalCode.SCHEMA_CHANGED]]],
  );
  const sent = asked.map((request) => [
    ...[request.tenant, request.server],
    ...request.approvals.map(({ name, hash }) => `${name}@${hash}`),
  ]);
  const once = ["acme", "sea", "tides@0f", "moon@f0"];
  assert.deepEqual(sent, [once, once]);
  const misspelt = { server: "sea", approvals: [{ name: "tides", sha: "0f" }] };
  await assert.rejects(client.approveTools(misspelt), {
    name: "TypeError",
    message: /^ApproveToolsRequest\.approvals\[0\] has no sha; it has name, hash$/,
  });
});

test("a listing fetches its pages as they are asked for", async () => {
  const asked: [number, string][] = [];
  await using fake = await Fake.http2({
    catalog: {
      listServers: ({ pageSize, pageToken }) => {
        asked.push([pageSize, pageToken]);
        const page = Number(pageToken || 0);
        return { servers: [{ name: `s${String(page)}` }], nextPageToken: page < 2 ? String(page + 1) : "" };
      },
    },
  });
  await using client = new Client(fake.target);
  const names: string[] = [];
  for await (const { name } of client.listServers()) names.push(name);
  assert.deepEqual(names, ["s0", "s1", "s2"]);
  assert.deepEqual(asked[0], [100, ""]);
  for await (const { name } of client.listServers({ pageSize: 7 })) {
    assert.equal(name, "s0");
    break;
  }
  assert.deepEqual(asked.slice(3), [[7, ""]]);
});

test("answers of many megabytes are received", async () => {
  const text = "x".repeat(20 * 1024 * 1024);
  await using fake = await Fake.http2({ router: { route: () => ({ activeSetHandle: text }) } });
  await using client = new Client(fake.target, { timeoutMs: 30_000 });
  assert.equal((await client.route({})).activeSetHandle.length, text.length);
});

test("what can't be sent is refused with its place", async () => {
  await using fake = await Fake.http2({ router: { route: () => ({}) } });
  await using client = new Client(fake.target);
  const mistaken: [object, RegExp][] = [
    [{ intent: [] }, /^RouteRequest has no intent; it has tenant, intents, /],
    [{ intents: "x" }, /^RouteRequest\.intents: must be a list$/],
    [{ intents: [{ text: "x" }, "y"] }, /^RouteRequest\.intents\[1\]: must be an object$/],
    [{ state: { scope: ["a"] } }, /^RouteRequest\.state has no scope; it has scopes, /],
    [{ options: { topK: -1 } }, /top_k.*invalid uint32: -1/],
  ];
  for (const [request, message] of mistaken) {
    await assert.rejects(client.route(request), { name: "TypeError", message });
  }
  await assert.rejects(client.listTools({ page_size: 3 } as never).next(), { name: "TypeError" });
  await assert.rejects(client.watchCatalog({ since: 3n } as never).next(), { name: "TypeError" });
});

test("when nobody listens, the error says where and asks the right question", async () => {
  await using client = new Client("127.0.0.1:1");
  const error = await failure(client.route({}));
  assert.deepEqual([error.code, error.reason], ["UNAVAILABLE", ""]);
  assert.match(error.message, /is `toolgate serve` running at 127\.0\.0\.1:1\?/);
});

test("a connection that breaks is UNAVAILABLE, is tried again, and is made again", async () => {
  let calls = 0;
  const cut: { service?: Fake } = {};
  await using fake = await Fake.http2({
    router: {
      route: async () => {
        calls += 1;
        if (calls === 1) {
          cut.service?.cut();
          await pause(50);
        }
        return {};
      },
    },
  });
  cut.service = fake;
  await using client = new Client(fake.target);
  await client.route({});
  assert.equal(calls, 2);
});

test("closing ends calls under way and gives the connection back", async () => {
  let tell = (): void => undefined;
  const came = new Promise<void>((resolve) => {
    tell = resolve;
  });
  await using fake = await Fake.http2({
    router: {
      route: (_request, { signal }) => {
        tell();
        return pause(60_000, {}, { signal });
      },
    },
  });
  const client = new Client(fake.target, { timeoutMs: 60_000 });
  const call = failure(client.route({}));
  await came;
  assert.equal(fake.connections, 1);
  client.close();
  client.close();
  assert.equal((await call).code, "CANCELLED");
  const connections = () => fake.connections;
  while (connections() > 0) await pause(5);
  await assert.rejects(client.route({}), { name: "TypeError", message: /closed: make a new one/ });
  await assert.rejects(client.listTools().next(), /closed/);
  await assert.rejects(client.watchCatalog().next(), /closed/);
});

test("a hundred calls at once share one connection", async () => {
  await using fake = await Fake.http2({ router: { route: () => pause(5, {}) } });
  await using client = new Client(fake.target);
  await Promise.all(Array.from({ length: 100 }, () => client.route({})));
  assert.equal(fake.connections, 1);
});
