package dev.toolgate.history;

import dev.toolgate.v1.CallStatus;

/**
 * One call of a history.
 *
 * @param tool the tool's name, as the model wrote it
 * @param status how it ended; unspecified while it has no answer
 * @param turn the model's turn in which it was made, from 0
 * @param id the provider's identifier of the call; empty when there was none
 */
public record SeenCall(String tool, CallStatus status, long turn, String id) {
    SeenCall ended(CallStatus status) {
        return new SeenCall(tool, status, turn, id);
    }
}
