package dev.toolgate;

import com.google.gson.JsonElement;
import com.google.gson.JsonParseException;
import dev.toolgate.internal.Json;
import dev.toolgate.v1.ActiveTool;
import dev.toolgate.v1.Detail;
import dev.toolgate.v1.RequestedCall;
import dev.toolgate.v1.SearchToolsRequest;
import java.math.BigInteger;

/**
 * The search as a tool to define for the model, beside the active set. Put it first and leave it
 * there, so that the cached prefix holds. Its calls are for {@link ToolgateClient#answerSearch};
 * gate does not know it.
 */
public final class SearchTool {
    /** The tool's name. */
    public static final String NAME = "toolgate_search_tools";

    private static final String FIRST_SENTENCE =
            "Finds tools that are not defined here and makes them callable: once it has answered, call what it found.";
    private static final String QUERY =
            "`select:name,name` for tools by their names, a server's name for all of its tools, keywords, of which"
                    + " `+word` must match, or a sentence that says what you want to do.";
    private static final String SCHEMA =
            "{\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\",\"description\":"
                    + Json.quoted(QUERY)
                    + "},\"max_results\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100,"
                    + "\"description\":\"The most tools to find. Default: 5.\"}},\"required\":[\"query\"]}";

    /** The tool, for the prompt's layout and for tools that you define yourself. */
    public static final ActiveTool TOOL =
            ActiveTool.newBuilder()
                    .setName(NAME)
                    .setModelName(NAME)
                    .setDescription(
                            FIRST_SENTENCE + " Search before you say that something can't be done.")
                    .setInputSchemaJson(SCHEMA)
                    .setAnnotationsJson("{\"title\":\"Find tools\",\"readOnlyHint\":true}")
                    .setSignature(
                            NAME + "(query: string, max_results?: integer) - " + FIRST_SENTENCE)
                    .setSchemaTokens(145)
                    .setSignatureLossy(true)
                    .build();

    private static final BigInteger MOST = BigInteger.valueOf(100);

    private SearchTool() {}

    /** The model's call can't be read; the text is for the model. */
    static final class MistakeException extends Exception {
        private static final long serialVersionUID = 1L;

        private MistakeException(String message) {
            super(message);
        }
    }

    /** The request that a model's call makes. */
    static SearchToolsRequest request(RequestedCall call, SearchToolsRequest rest)
            throws MistakeException {
        JsonElement asked = arguments(call.getArgumentsJson());
        JsonElement query = Json.field(asked, "query");
        if (!Json.isText(query) || !Json.isSendable(query.getAsString())) {
            throw new MistakeException("query: must be a text");
        }
        SearchToolsRequest.Builder request =
                rest.toBuilder().setQuery(query.getAsString()).clearMaxResults();
        JsonElement most = Json.field(asked, "max_results");
        if (!most.isJsonNull()) {
            request.setMaxResults(count(most));
        }
        if (rest.getDetail() == Detail.DETAIL_UNSPECIFIED) {
            request.setDetail(Detail.DETAIL_REFERENCES);
        }
        return request.build();
    }

    /** The answer to a mistake of the model's; anything else is thrown on. */
    static SearchAnswer mistaken(Exception error, String handle) {
        if (error instanceof MistakeException) {
            return SearchAnswer.mistaken(error.getMessage(), handle);
        }
        if (error instanceof ToolgateException failure && isTheModels(failure)) {
            return SearchAnswer.mistaken(failure.serviceMessage(), handle);
        }
        throw (RuntimeException) error;
    }

    private static JsonElement arguments(String written) throws MistakeException {
        try {
            JsonElement read = Json.parse(written);
            if (read.isJsonObject()) {
                return read;
            }
        } catch (JsonParseException e) {
            // Told below.
        }
        throw new MistakeException("the arguments must be a JSON object");
    }

    private static int count(JsonElement most) throws MistakeException {
        if (Json.isWhole(most)) {
            BigInteger count = most.getAsBigInteger();
            if (count.signum() > 0 && count.compareTo(MOST) <= 0) {
                return count.intValue();
            }
        }
        throw new MistakeException("max_results: must be a whole number from 1 to 100");
    }

    /** Whether the service refused what the model wrote, and not what the caller gave. */
    private static boolean isTheModels(ToolgateException failure) {
        boolean isTooLong = "limits.max_intent_size".equals(failure.metadata().get("limit"));
        boolean isItsFields =
                !failure.violations().isEmpty()
                        && failure.violations().stream()
                                .allMatch(
                                        v ->
                                                v.field().equals("query")
                                                        || v.field().equals("max_results"));
        return isTooLong || isItsFields;
    }
}
