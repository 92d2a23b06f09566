// compile.mjs PROJECT FOLDER SOURCE...: compiles a TypeScript project anew into a folder of this package, which first
// loses what an older build left. It does nothing where the folder is still what these sources were compiled to.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const [project, folder, ...sources] = process.argv.slice(2);
// What is installed anew takes the mark with it.
const mark = join(root, "node_modules", ".cache", `compiled-${folder}`);
const settings = [
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  project,
  join("scripts", "compile.mjs"),
];

if (before() !== digest()) {
  rmSync(mark, { force: true });
  rmSync(join(root, folder), { recursive: true, force: true });
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  try {
    execFileSync(process.execPath, [tsc, "-p", project], { cwd: root, stdio: "inherit" });
  } catch (error) {
    process.exit(error.status ?? 1);
  }
  mkdirSync(dirname(mark), { recursive: true });
  writeFileSync(mark, digest());
}

function before() {
  try {
    return readFileSync(mark, "utf8");
  } catch {
    return "";
  }
}

/** Sums up the settings, the sources and what they were compiled to: names and contents. */
function digest() {
  const hash = createHash("sha256").update(process.version);
  for (const file of [...settings, ...sources.flatMap(files), ...files(folder)]) {
    const contents = readFileSync(join(root, file));
    hash.update(`\n${file}\n${contents.length}\n`).update(contents);
  }
  return hash.digest("hex");
}

/** Returns the files below a folder, in one order; none where it is absent. */
function files(below) {
  try {
    const found = readdirSync(join(root, below), { recursive: true }).map((name) => join(below, name));
    return found.filter((file) => statSync(join(root, file)).isFile()).sort();
  } catch (error) {
    if (error.code === "ENOENT") return [];
    throw error;
  }
}
