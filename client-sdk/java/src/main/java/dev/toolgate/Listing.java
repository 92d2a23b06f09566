package dev.toolgate;

import com.google.protobuf.Message;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Function;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * All items of a listing. Its pages are fetched as they are used, and anew by each iteration.
 *
 * @param <T> what is listed
 */
public final class Listing<T> implements Iterable<T> {
    private final Function<String, Page<T>> pages;

    /** One page, and the token of the next one; empty on the last. */
    private record Page<T>(List<T> items, String next) {}

    <Q extends Message, A> Listing(
            Q request, Function<Q, A> fetch, Function<A, List<T>> items, Function<A, String> next) {
        this.pages =
                token -> {
                    A page = fetch.apply(token.isEmpty() ? request : Pages.after(request, token));
                    return new Page<>(items.apply(page), next.apply(page));
                };
    }

    @Override
    public Iterator<T> iterator() {
        return new Iterator<>() {
            private Iterator<T> page;
            private String next = "";

            @Override
            public boolean hasNext() {
                // A page may be empty and not the last.
                while (page == null || (!page.hasNext() && !next.isEmpty())) {
                    Page<T> fetched = pages.apply(next);
                    page = fetched.items().iterator();
                    next = fetched.next();
                }
                return page.hasNext();
            }

            @Override
            public T next() {
                if (!hasNext()) {
                    throw new NoSuchElementException("the listing has no more items");
                }
                return page.next();
            }
        };
    }

    /**
     * The items as a stream, which fetches as lazily.
     *
     * @return the stream
     */
    public Stream<T> stream() {
        return StreamSupport.stream(spliterator(), false);
    }
}
