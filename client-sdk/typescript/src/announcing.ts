/**
 * Telling the model what it can search for: the whole list once, then only what changed. Announcements go at the
 * end of the history and stay there, so that the cached prefix before them holds. After a compaction, when they
 * are gone, begin again without `announced`.
 */
import { oneLine } from "./texts.js";

/** Names of tools that a search can find, each alone or with one line about it. */
export type Searchable = Iterable<string | readonly [name: string, line: string]>;

/** Knowledge that the model has already. */
export interface Announced {
  /** Names of the tools whose definitions the model has: they need no search. Default: none. */
  readonly loaded?: Iterable<string>;
  /** The last announcement's `announced`. Default: the model has been told nothing. */
  readonly announced?: Iterable<string> | undefined;
}

/** News for the model this turn. */
export interface Announcement {
  /** True when this is the whole list. */
  readonly full: boolean;
  /** Tools that can be searched for and were not announced: one line by name, "" for the name alone. */
  readonly added: ReadonlyMap<string, string>;
  /** Names that were announced and are neither searchable nor loaded now, in their order. */
  readonly removed: readonly string[];
  /** Every name that the model has been told of and that is still there; for the next turn. */
  readonly announced: readonly string[];
  /** The text to append to the history; "" when there is nothing to tell. */
  readonly text: string;
}

/**
 * Announces what changed since the last announcement.
 *
 * @param searchable tools that a search can find, such as a summary pool; loaded tools may be among them.
 */
export function announce(searchable: Searchable, known: Announced = {}): Announcement {
  const lines = new Map(
    Array.from(searchable, (one) => (typeof one === "string" ? ([one, ""] as const) : one)),
  );
  const loaded = new Set(known.loaded);
  const told = new Set(known.announced);
  const isThere = (name: string) => lines.has(name) || loaded.has(name);
  const added = new Map([...lines].filter(([name]) => !told.has(name) && !loaded.has(name)));
  const removed = [...told].filter((name) => !isThere(name));
  const announced = [...[...told].filter(isThere), ...added.keys()];
  const full = known.announced === undefined;
  return { full, added, removed, announced, text: textOf(full, added, removed) };
}

function textOf(full: boolean, added: ReadonlyMap<string, string>, removed: readonly string[]): string {
  const tag = full ? "searchable-tools" : "searchable-tools-added";
  const parts: string[] = [];
  if (added.size > 0) parts.push(tagged(tag, Array.from(added, line)));
  if (removed.length > 0) parts.push(tagged("searchable-tools-removed", removed));
  return parts.join("\n");
}

function tagged(tag: string, lines: readonly string[]): string {
  return [`<${tag}>`, ...lines, `</${tag}>`].join("\n");
}

function line([name, about]: readonly [string, string]): string {
  // One line each, whatever a summary holds.
  const said = oneLine(about);
  return said === "" ? name : `${name}: ${said}`;
}
