package linear

import (
	"fmt"
	"slices"
)

// initialNodes returns the parameters of every order.
func initialNodes() nodes { return nodes{min: 4, max: 10} }

// order predicts the response to PUT /v2/service_instances/{id}.
func (s *state) order(c call, a answer) (*state, string) {
	switch {
	case s.phase == deleting:
		return s.unchanged(a, unprocessable, concurrency)
	case s.phase == absent && c.async:
		next, why := s.accept(a, creating)
		if why != "" {
			return nil, why
		}

		next.variant, next.nodes = c.variant, initialNodes()

		for i := range next.bindings {
			next.bindings[i].former = len(next.bindings[i].operations)
		}

		return next, ""
	case s.phase == absent:
		return s.unchanged(a, unprocessable, asyncRequired)
	case c.variant != s.variant:
		return s.unchanged(a, conflict)
	case s.phase == creating:
		return s.repeated(c, a)
	default:
		return s.unchanged(a, ok)
	}
}

// accept returns the state after a new operation on the instance was accepted.
func (s *state) accept(a answer, then phase) (*state, string) {
	if why := a.want(accepted); why != "" {
		return nil, why + " with a new operation"
	}

	if a.operation == "" || slices.ContainsFunc(s.operations, func(each operation) bool { return each.id == a.operation }) {
		return nil, fmt.Sprintf("want a new operation, not %q", a.operation)
	}

	next := s.clone()
	next.phase = then
	next.operations = append(next.operations, operation{id: a.operation, progress: running})

	return next, ""
}

// repeated predicts the response to a request for which an operation is already in progress.
func (s *state) repeated(c call, a answer) (*state, string) {
	current := s.operations[len(s.operations)-1].id

	switch {
	case !c.async:
		return s.unchanged(a, unprocessable, asyncRequired)
	case a.operation != current:
		return nil, fmt.Sprintf("want 202 with operation %q", shorten(current))
	default:
		return s.unchanged(a, accepted)
	}
}

// update predicts the response to PATCH /v2/service_instances/{id}.
func (s *state) update(c call, a answer) (*state, string) {
	switch s.phase {
	case absent:
		return s.unchanged(a, missing)
	case creating, deleting:
		return s.unchanged(a, unprocessable, concurrency)
	case updating:
		if s.target.merged(c.nodes) != s.target {
			return s.unchanged(a, unprocessable, concurrency)
		}

		return s.repeated(c, a)
	default:
	}

	target := s.nodes.merged(c.nodes)

	switch {
	case target == s.nodes:
		return s.unchanged(a, ok)
	case !c.async:
		return s.unchanged(a, unprocessable, asyncRequired)
	}

	next, why := s.accept(a, updating)
	if why == "" {
		next.target = target
	}

	return next, why
}

// remove predicts the response to DELETE /v2/service_instances/{id}. A deletion cancels the creation or update of the instance
// and the creations of its bindings.
func (s *state) remove(c call, a answer) (*state, string) {
	switch {
	case s.phase == absent:
		return s.unchanged(a, gone)
	case s.phase == deleting || !c.async:
		return s.repeated(c, a)
	}

	next, why := s.accept(a, deleting)
	if why != "" {
		return nil, why
	}

	next.target = nodes{}
	replace(next.operations[:len(next.operations)-1], running, canceled)

	for i := range next.bindings {
		if next.bindings[i].phase == creating {
			replace(next.bindings[i].operations, running, canceled)
		}
	}

	return next, ""
}

// fetch predicts the response to GET /v2/service_instances/{id}.
func (s *state) fetch(a answer) (*state, string) {
	switch s.phase {
	case absent, creating:
		return s.unchanged(a, missing)
	case deleting:
		return s.unchanged(a, unprocessable, concurrency)
	default:
	}

	if a.nodes != s.nodes || a.variant != s.variant {
		return nil, fmt.Sprintf("want 200 with variant %d %+v", s.variant, s.nodes)
	}

	return s.unchanged(a, ok)
}

// poll predicts the response to GET /v2/service_instances/{id}/last_operation. Every outcome stays visible, even after the
// instance is gone.
func (s *state) poll(c call, a answer) (*state, string) {
	index := indexOf(s.operations, c.operation)
	if index < 0 {
		return s.unchanged(a, missing)
	}

	shown, why := s.operations[index].show(a.state)
	if why != "" || shown == s.operations[index] {
		return s.unchangedIf(a, why)
	}

	next := s.clone()
	next.operations[index] = shown

	return next, a.want(ok)
}

// unchangedIf returns the unchanged state if why is empty and the status is 200, and otherwise the reason why the response is
// wrong.
func (s *state) unchangedIf(a answer, why string) (*state, string) {
	if why != "" {
		return nil, why
	}

	return s.unchanged(a, ok)
}

// indexOf returns the index of the operation with the given ID, or of the newest operation if the ID is empty. It returns a negative
// number if there is no such operation.
func indexOf(operations []operation, id string) int {
	if id == "" {
		return len(operations) - 1
	}

	return slices.IndexFunc(operations, func(each operation) bool { return each.id == id })
}
