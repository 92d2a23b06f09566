/** Failed calls: their details, and trailers that nobody should send. */
import assert from "node:assert/strict";
import { createServer as createHttp1 } from "node:http";
import { createServer, type ServerHttp2Stream } from "node:http2";
import { test } from "node:test";

import { toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { create } from "@bufbuild/protobuf";
import { base64Encode } from "@bufbuild/protobuf/wire";

import * as rpc from "../../src/gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../src/gen/google/rpc/status_pb.js";
import { Client as WebClient } from "../../src/index.js";
import { Client, ToolgateError } from "../../src/node.js";
import { Fake } from "../fake.js";

type Trailers = Record<string, string>;

/** A service that answers every call with these trailers alone. */
function answering(trailers: Trailers): Promise<Fake> {
  const server = createServer();
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => {
      stream.sendTrailers(trailers);
    });
    stream.end();
  });
  return Fake.listen(server);
}

/** The same in gRPC-Web: trailers in the body's last frame, or as headers of a body without frames. */
function answeringWeb(trailers: Trailers, inBody: boolean): Promise<Fake> {
  return Fake.listen(
    createHttp1((request, response) => {
      request.resume();
      const type = { "content-type": "application/grpc-web+proto" };
      response.writeHead(200, inBody ? type : { ...type, ...trailers });
      const lines = Object.entries(trailers).map(([name, value]) => `${name}: ${value}\r\n`);
      const data = Buffer.from(lines.join(""));
      const prefix = Buffer.alloc(5);
      prefix[0] = 0x80;
      prefix.writeUInt32BE(data.length, 1);
      response.end(inBody ? Buffer.concat([prefix, data]) : undefined);
    }),
  );
}

async function failure(client: Client | WebClient): Promise<ToolgateError> {
  try {
    await client.getServer({ server: "s" });
  } catch (error) {
    assert.ok(error instanceof ToolgateError, `a ToolgateError, not ${String(error)}`);
    return error;
  }
  throw new Error("the call did not fail");
}

function details(code: number, domain = "toolgate", reason = "LIMIT_EXCEEDED"): string {
  const status = create(StatusSchema, {
    code,
    message: "too much",
    details: [
      anyPack(rpc.RetryInfoSchema, create(rpc.RetryInfoSchema, { retryDelay: { seconds: 1n, nanos: 5e8 } })),
      anyPack(rpc.ErrorInfoSchema, create(rpc.ErrorInfoSchema, { reason, domain, metadata: { limit: "x" } })),
      anyPack(
        rpc.BadRequestSchema,
        create(rpc.BadRequestSchema, { fieldViolations: [{ field: "a.b", description: "must be c" }] }),
      ),
      { typeUrl: "type.googleapis.com/google.rpc.ErrorInfo", value: new Uint8Array([0xff, 0xff]) },
      { typeUrl: "no url", value: new Uint8Array([1]) },
    ],
  });
  return base64Encode(toBinary(StatusSchema, status), "std_raw");
}

async function overAll(trailers: Trailers, check: (error: ToolgateError) => void): Promise<void> {
  await using fake = await answering(trailers);
  await using client = new Client(fake.target);
  check(await failure(client));
  for (const inBody of [true, false]) {
    await using web = await answeringWeb(trailers, inBody);
    await using webClient = new WebClient(web.target);
    check(await failure(webClient));
  }
}

test("all details are read", () =>
  overAll(
    { "grpc-status": "3", "grpc-message": "too much", "grpc-status-details-bin": details(3) },
    (error) => {
      assert.deepEqual(
        [error.code, error.reason, error.detail],
        ["INVALID_ARGUMENT", "LIMIT_EXCEEDED", "too much"],
      );
      assert.deepEqual(error.metadata, { limit: "x" });
      assert.deepEqual(error.fieldViolations, [{ field: "a.b", description: "must be c" }]);
      assert.equal(error.retryAfter, 1.5);
      assert.equal(error.message, "LIMIT_EXCEEDED: too much; a.b: must be c");
    },
  ));

test("a reason of a later version is kept, one of another domain is not ours", async () => {
  const trailers = (encoded: string) => ({ "grpc-status": "9", "grpc-status-details-bin": encoded });
  await overAll(trailers(details(9, "toolgate", "BRAND_NEW")), ({ reason }) => {
    assert.equal(reason, "BRAND_NEW");
  });
  await overAll(trailers(details(9, "example.com")), ({ reason, metadata }) => {
    assert.deepEqual([reason, metadata], ["", {}]);
  });
});

const garbled: [string, string][] = [
  ["no base64", "!!!"],
  ["no message", base64Encode(new Uint8Array([0xff, 0xff, 0xff]))],
  ["a message cut short", details(5).slice(0, 30)],
  ["another status", details(3)],
  ["success", base64Encode(toBinary(StatusSchema, create(StatusSchema)))],
];

for (const [name, encoded] of garbled) {
  test(`details that are ${name} do not hide the status`, () =>
    overAll(
      { "grpc-status": "5", "grpc-message": "not here", "grpc-status-details-bin": encoded },
      (error) => {
        assert.deepEqual([error.code, error.detail, error.reason], ["NOT_FOUND", "not here", ""]);
      },
    ));
}

test("messages are unescaped where they are escaped", async () => {
  await overAll({ "grpc-status": "5", "grpc-message": "gr%C3%B6%C3%9Fer" }, ({ detail }) => {
    assert.equal(detail, "größer");
  });
  await overAll({ "grpc-status": "5", "grpc-message": "100% wrong" }, ({ code, detail }) => {
    assert.deepEqual([code, detail], ["NOT_FOUND", "100% wrong"]);
  });
});

test("what is no gRPC at all is an error of the call", async () => {
  await using page = await Fake.listen(
    createHttp1((_request, response) => {
      response.writeHead(404, { "content-type": "text/html" }).end("<h1>Not here</h1>");
    }),
  );
  await using web = new WebClient(page.target);
  assert.equal((await failure(web)).code, "UNIMPLEMENTED");
  await using client = new Client(page.target, { timeoutMs: 60_000 });
  assert.equal((await failure(client)).code, "UNAVAILABLE");
});
