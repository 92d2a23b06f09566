/** The cases of client-sdk/conformance. A missing folder is a failure. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { sdkFolder } from "../folders.js";

const CASES = join(sdkFolder, "..", "conformance");

/** One case: its own fields beside the name. */
export interface Case {
  readonly name: string;
  // The cases are plain JSON, of many shapes.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly [field: string]: any;
}

/** The cases of a folder's files whose names begin so, by file. */
export function cases(folder: string, prefix = ""): [file: string, case_: Case][] {
  const files = readdirSync(join(CASES, folder)).filter((file) => file.startsWith(prefix));
  if (files.length === 0) {
    throw new Error(`no cases in ${folder}`);
  }
  return files.sort().flatMap((file) => {
    const text = readFileSync(join(CASES, folder, file), "utf8");
    const read = JSON.parse(text) as { cases: Case[] };
    return read.cases.map((one): [string, Case] => [file.replace(/\.json$/, ""), one]);
  });
}
