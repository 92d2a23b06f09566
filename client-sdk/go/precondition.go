package toolgate

import "toolgate.dev/go/toolgatev1"

// IsAuthenticated holds when the agent's state grants the scope, which must not be empty.
func IsAuthenticated(scope string) *toolgatev1.Precondition {
	return &toolgatev1.Precondition{Condition: &toolgatev1.Precondition_IsAuthenticated{IsAuthenticated: scope}}
}

// HasPriorToolOutput holds when a succeeded prior call's tool name begins with the prefix, which must not be
// empty.
func HasPriorToolOutput(prefix string) *toolgatev1.Precondition {
	return &toolgatev1.Precondition{Condition: &toolgatev1.Precondition_HasPriorToolOutput{HasPriorToolOutput: prefix}}
}

// MilestoneReached holds when the agent's state names the milestone, which must not be empty.
func MilestoneReached(name string) *toolgatev1.Precondition {
	return &toolgatev1.Precondition{Condition: &toolgatev1.Precondition_MilestoneReached{MilestoneReached: name}}
}

// CEL holds when the CEL expression over `state`, `tool`, `principal` and `now` is true.
func CEL(expression string) *toolgatev1.Precondition {
	return &toolgatev1.Precondition{Condition: &toolgatev1.Precondition_Cel{Cel: expression}}
}

// AllOf holds when each of the 1 to 64 operands does; an AllOf among them is merged into this one.
func AllOf(operands ...*toolgatev1.Precondition) *toolgatev1.Precondition {
	list := merged(operands, (*toolgatev1.Precondition).GetAll)
	return &toolgatev1.Precondition{Condition: &toolgatev1.Precondition_All{All: list}}
}

// AnyOf holds when at least one of the 1 to 64 operands does; an AnyOf among them is merged into this one.
func AnyOf(operands ...*toolgatev1.Precondition) *toolgatev1.Precondition {
	list := merged(operands, (*toolgatev1.Precondition).GetAny)
	return &toolgatev1.Precondition{Condition: &toolgatev1.Precondition_Any{Any: list}}
}

// Not holds when the operand does not. A second Not takes the first one back.
func Not(operand *toolgatev1.Precondition) *toolgatev1.Precondition {
	if inner := operand.GetNot(); inner != nil {
		return inner
	}
	return &toolgatev1.Precondition{Condition: &toolgatev1.Precondition_Not{Not: operand}}
}

func merged(operands []*toolgatev1.Precondition, within func(*toolgatev1.Precondition) *toolgatev1.PreconditionList) *toolgatev1.PreconditionList {
	list := &toolgatev1.PreconditionList{}
	for _, operand := range operands {
		if inner := within(operand); inner != nil {
			list.Preconditions = append(list.Preconditions, inner.GetPreconditions()...)
		} else {
			list.Preconditions = append(list.Preconditions, operand)
		}
	}
	return list
}
