/** Texts for prompts: on one line, or JSON as registered without its white space. */

/** A text on one line. */
export function oneLine(text: string): string {
  return text
    .split(/\p{White_Space}+/u)
    .filter(Boolean)
    .join(" ");
}

/** JSON without white space between its tokens; everything else byte for byte as it was. */
export function minified(json: string): string {
  // Texts match first, so that the white space within them stays.
  return json.replace(/("(?:[^"\\]|\\.)*")|[ \t\r\n]+/gs, (_, text?: string) => text ?? "");
}
