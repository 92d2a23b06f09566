/** Locates folders, seen from the compiled tests in `build/test`. */
import { fileURLToPath } from "node:url";

/** This package's folder. */
export const sdkFolder = fileURLToPath(new URL("../..", import.meta.url));

/** The repository's folder. */
export const repository = fileURLToPath(new URL("../../../..", import.meta.url));
