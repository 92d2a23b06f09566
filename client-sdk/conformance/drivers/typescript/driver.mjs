// Reads one request a line from standard input and answers each with one line, in order; see README.md.
import { createInterface } from "node:readline";

import { VERSION } from "@toolgate/client";

import { calling } from "./calling.mjs";
import { closeAll } from "./clients.mjs";
import { helping } from "./helping.mjs";
import { measuring } from "./measuring.mjs";
import { told } from "./messages.mjs";
import { stopAll, watching } from "./watching.mjs";

const operations = {
  ...calling,
  ...helping,
  ...measuring,
  ...watching,
  versions: () => ({ sdk: VERSION, runtime: `node${process.versions.node}` }),
};

for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() === "") continue;
  const answer = await answerTo(line).catch((error) => ({ error: told(error) }));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await stopAll();
closeAll();

async function answerTo(line) {
  const { op, client, args = {} } = JSON.parse(line);
  if (!Object.hasOwn(operations, op)) {
    return { error: { kind: "driver", message: `no such operation: ${op}` } };
  }
  return { ok: await operations[op](args, client, line) };
}
