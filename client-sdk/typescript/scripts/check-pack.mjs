// Packs the package, installs the tarball in an empty project, and imports every entry there, as a user would.
// Takes from the registry what the package depends on.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { publint } from "publint";
import { formatMessage } from "publint/utils";

const sdk = fileURLToPath(new URL("..", import.meta.url));
const project = mkdtempSync(join(tmpdir(), "toolgate-pack-"));
// The middleware's entries need packages that an empty project does not have.
const entries = ["@toolgate/client", "@toolgate/client/node", "@toolgate/client/web"];

const js = `
${entries.map((entry, at) => `import * as entry${at} from "${entry}";`).join("\n")}
for (const entry of [${entries.map((_, at) => `entry${at}`)}]) new entry.Client("127.0.0.1:7070").close();
if (entry0.Client !== entry1.Client) throw new Error("in Node, the package is not Node's client");
if (entry0.Client === entry2.Client) throw new Error("the client over fetch is Node's");
`;
const ts = `
import { Client, calls, renderedTools, v1 } from "@toolgate/client";
import { Client as Web } from "@toolgate/client/web";
export async function use(client: Client | Web): Promise<string[]> {
  const render = { format: v1.ToolFormat.OPENAI_RESPONSES };
  const turn: v1.RouteResponse = await client.route({ intents: [{ text: "x" }], state: { scopes: ["a"] }, render });
  await client.gate({ activeSetHandle: turn.activeSetHandle, calls: [calls.of("a", {})] });
  return renderedTools<{ name: string }>(turn).map((tool) => tool.name);
}
`;

try {
  run("npm", ["pack", "--silent", "--pack-destination", project], sdk);
  const { messages, pkg } = await publint({ pkgDir: sdk, strict: true });
  for (const message of messages) console.error(formatMessage(message, pkg));
  if (messages.length > 0) throw new Error("publint has something to say");
  writeFileSync(join(project, "package.json"), '{ "type": "module", "private": true }\n');
  run("npm", ["install", "--silent", `./toolgate-client-${pkg.version}.tgz`], project);
  writeFileSync(join(project, "use.mjs"), js);
  run("node", ["use.mjs"], project);
  writeFileSync(join(project, "use.ts"), ts);
  const tsc = join(sdk, "node_modules", ".bin", "tsc");
  for (const [module, resolution] of [
    ["nodenext", "nodenext"],
    ["esnext", "bundler"],
  ]) {
    const options = [
      "--ignoreConfig",
      "--noEmit",
      "--strict",
      "--target",
      "es2022",
      "--lib",
      "es2023,dom,esnext.disposable",
    ];
    run(tsc, [...options, "--module", module, "--moduleResolution", resolution, "use.ts"], project);
  }
  console.log("the package installs, and its entries and types are found");
} finally {
  rmSync(project, { recursive: true });
}

function run(command, args, cwd) {
  execFileSync(command, args, { cwd, stdio: ["ignore", "inherit", "inherit"] });
}
