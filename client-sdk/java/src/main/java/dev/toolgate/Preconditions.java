package dev.toolgate;

import dev.toolgate.v1.Precondition;
import dev.toolgate.v1.PreconditionList;
import java.util.ArrayList;
import java.util.List;

/**
 * What must hold of an agent's state before a tool is shown or called, such as {@code
 * allOf(isAuthenticated("repo:write"), not(milestoneReached("frozen")))}. At most 64 nodes, nested
 * 8 deep.
 */
public final class Preconditions {
    private Preconditions() {}

    /**
     * Holds when the agent's state grants a scope.
     *
     * @param scope the scope
     * @return the precondition
     * @throws IllegalArgumentException when it is empty
     */
    public static Precondition isAuthenticated(String scope) {
        return Precondition.newBuilder()
                .setIsAuthenticated(named("isAuthenticated", scope))
                .build();
    }

    /**
     * Holds when a succeeded prior call's tool name begins with a prefix.
     *
     * @param prefix the prefix
     * @return the precondition
     * @throws IllegalArgumentException when it is empty
     */
    public static Precondition hasPriorToolOutput(String prefix) {
        return Precondition.newBuilder()
                .setHasPriorToolOutput(named("hasPriorToolOutput", prefix))
                .build();
    }

    /**
     * Holds when the agent's state names a milestone.
     *
     * @param name the milestone
     * @return the precondition
     * @throws IllegalArgumentException when it is empty
     */
    public static Precondition milestoneReached(String name) {
        return Precondition.newBuilder()
                .setMilestoneReached(named("milestoneReached", name))
                .build();
    }

    /**
     * Holds when a CEL expression over {@code state}, {@code tool}, {@code principal} and {@code
     * now} is true.
     *
     * @param expression the expression, at most 2 KiB
     * @return the precondition
     * @throws IllegalArgumentException when it is empty
     */
    public static Precondition cel(String expression) {
        return Precondition.newBuilder().setCel(named("cel", expression)).build();
    }

    /**
     * Holds when each operand does; an {@code allOf} among them is merged into this one.
     *
     * @param operands one at least
     * @return the precondition
     * @throws IllegalArgumentException when there is none
     */
    public static Precondition allOf(Precondition... operands) {
        return Precondition.newBuilder()
                .setAll(merged(operands, Precondition.ConditionCase.ALL))
                .build();
    }

    /**
     * Holds when at least one operand does; an {@code anyOf} among them is merged into this one.
     *
     * @param operands one at least
     * @return the precondition
     * @throws IllegalArgumentException when there is none
     */
    public static Precondition anyOf(Precondition... operands) {
        return Precondition.newBuilder()
                .setAny(merged(operands, Precondition.ConditionCase.ANY))
                .build();
    }

    /**
     * Holds when the operand does not; of a negation it is what was negated.
     *
     * @param operand what must not hold
     * @return the precondition
     */
    public static Precondition not(Precondition operand) {
        return operand.hasNot()
                ? operand.getNot()
                : Precondition.newBuilder().setNot(operand).build();
    }

    private static String named(String predicate, String argument) {
        if (argument.isEmpty()) {
            throw new IllegalArgumentException(predicate + " needs a text that is not empty");
        }
        return argument;
    }

    private static PreconditionList merged(
            Precondition[] operands, Precondition.ConditionCase kind) {
        List<Precondition> merged = new ArrayList<>();
        for (Precondition operand : operands) {
            if (operand.getConditionCase() != kind) {
                merged.add(operand);
            } else if (kind == Precondition.ConditionCase.ALL) {
                merged.addAll(operand.getAll().getPreconditionsList());
            } else {
                merged.addAll(operand.getAny().getPreconditionsList());
            }
        }
        if (merged.isEmpty()) {
            throw new IllegalArgumentException("at least one precondition is needed");
        }
        return PreconditionList.newBuilder().addAllPreconditions(merged).build();
    }
}
