/** Counts the cl100k_base tokens of the texts of a JSON list on standard input. */
import { readFileSync } from "node:fs";

import { getEncoding } from "js-tiktoken";

const encoding = getEncoding("cl100k_base");
const texts = JSON.parse(readFileSync(0, "utf8")) as string[];
process.stdout.write(JSON.stringify(texts.map((text) => encoding.encode(text, [], []).length)));
