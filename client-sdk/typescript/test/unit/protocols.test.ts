/** The same over every transport: gRPC with and without TLS, gRPC-Web, Connect with JSON. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { Code, ConnectError } from "@connectrpc/connect";

import { BadRequestSchema, ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.js";
import { Client as WebClient } from "../../src/index.js";
import { Client, type RemoteClient, ToolgateError } from "../../src/node.js";
import { type Answers, Fake } from "../fake.js";

const sent: (string | null)[] = [];
const answers: Answers = {
  router: {
    route: ({ tenant, intents }, { requestHeader }) => {
      sent.push(requestHeader.get("authorization"));
      if (tenant === "wrong") {
        throw new ConnectError("no such tenant", Code.NotFound, undefined, [
          { desc: ErrorInfoSchema, value: { reason: "TENANT_NOT_FOUND", domain: "toolgate" } },
          { desc: BadRequestSchema, value: { fieldViolations: [{ field: "tenant", description: "no" }] } },
        ]);
      }
      return {
        activeSetHandle: intents.map(({ text }) => text).join(),
        catalogRevision: 2n ** 60n,
        accounting: { savedTokens: -7n },
      };
    },
  },
};

async function speaks(client: RemoteClient): Promise<void> {
  const turn = await client.route({ intents: [{ text: "größer \u{1F600}", weight: 0.5 }] });
  assert.equal(turn.activeSetHandle, "größer \u{1F600}");
  assert.equal(turn.catalogRevision, 2n ** 60n);
  assert.equal(turn.accounting?.savedTokens, -7n);
  await assert.rejects(client.route({ tenant: "wrong" }), (error: unknown) => {
    assert.ok(error instanceof ToolgateError);
    assert.deepEqual(
      [error.code, error.reason, error.detail],
      ["NOT_FOUND", "TENANT_NOT_FOUND", "no such tenant"],
    );
    assert.deepEqual(error.fieldViolations, [{ field: "tenant", description: "no" }]);
    return true;
  });
  assert.equal(sent.at(-1), "Bearer key");
}

test("gRPC", async () => {
  await using fake = await Fake.http2(answers);
  await using client = new Client(fake.target, { apiKey: "key" });
  await speaks(client);
});

for (const protocol of ["grpc-web", "connect"] as const) {
  test(protocol, async () => {
    await using fake = await Fake.http1(answers);
    await using client = new WebClient(`http://${fake.target}`, { apiKey: "key", protocol });
    await speaks(client);
  });

  test(`${protocol} when nobody listens, and when it takes too long`, async () => {
    await using nobody = new WebClient("127.0.0.1:1", { protocol });
    await assert.rejects(nobody.route({}), /UNAVAILABLE: .*is `toolgate serve` running at 127\.0\.0\.1:1\?/);
    await using fake = await Fake.http1({ router: { route: () => new Promise(() => 0) } });
    await using client = new WebClient(fake.target, { protocol, timeoutMs: 60 });
    await assert.rejects(client.route({}), (error: ToolgateError) => error.code === "DEADLINE_EXCEEDED");
  });

  test(`${protocol} is tried again where it was UNAVAILABLE, and ends with the client`, async () => {
    let calls = 0;
    await using fake = await Fake.http1({
      router: {
        route: () => {
          calls += 1;
          if (calls < 3) throw new ConnectError("draining", Code.Unavailable);
          return calls === 3 ? {} : new Promise(() => 0);
        },
      },
    });
    const client = new WebClient(fake.target, { protocol });
    await client.route({});
    assert.equal(calls, 3);
    const hanging = client.route({});
    client.close();
    await assert.rejects(hanging, (error: ToolgateError) => error.code === "CANCELLED");
  });
}

const folder = mkdtempSync(join(tmpdir(), "toolgate-tls-"));
after(() => {
  rmSync(folder, { recursive: true });
});

/** A key and a certificate for a name, signed by itself or by another's. */
function certificate(name: string, signer?: string): void {
  const [key, out] = [`${name}.key`, `${name}.pem`];
  const made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const signed = signer === undefined ? [] : ["-CA", `${signer}.pem`, "-CAkey", `${signer}.key`];
  const named = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`, "-days", "2"];
  execFileSync("openssl", [...made, ...named, ...signed, "-keyout", key, "-out", out], {
    cwd: folder,
    stdio: "ignore",
  });
}

function pem(file: string): Buffer {
  return readFileSync(join(folder, file));
}

test("gRPC over TLS, with a certificate of the client's own, under another name", async () => {
  certificate("authority");
  certificate("tools.example.com", "authority");
  certificate("agent", "authority");
  const ca = pem("authority.pem");
  await using fake = await Fake.tls(answers, {
    ...{ ca, cert: pem("tools.example.com.pem"), key: pem("tools.example.com.key") },
    ...{ requestCert: true, rejectUnauthorized: true },
  });
  const own = { cert: pem("agent.pem"), key: pem("agent.key") };
  const tls = { ca, ...own, serverName: "tools.example.com" };
  await using client = new Client(`https://${fake.target}`, { tls, apiKey: "key" });
  await speaks(client);
  const mistaken = [
    { ca, ...own },
    { ...own, serverName: "tools.example.com" },
    { ca, serverName: "tools.example.com" },
  ];
  for (const settings of mistaken) {
    await using refused = new Client(fake.target, { tls: settings, timeoutMs: 60_000 });
    await assert.rejects(refused.route({}), (error: ToolgateError) => error.code === "UNAVAILABLE");
  }
});
