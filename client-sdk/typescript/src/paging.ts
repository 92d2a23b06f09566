/** Listings: all items of all pages, fetched as they are asked for. */

/** One page of a listing. */
export interface Page<T> {
  readonly items: readonly T[];
  /** Token of the next page; "" on the last one. */
  readonly next: string;
}

/** The items of all pages, from the page that a token names. */
export async function* pages<T>(
  first: string,
  fetch: (pageToken: string) => Promise<Page<T>>,
): AsyncGenerator<T, void> {
  let token = first;
  do {
    const page = await fetch(token);
    yield* page.items;
    token = page.next;
  } while (token !== "");
}
