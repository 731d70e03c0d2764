package linear

import (
	"cmp"
	"fmt"
	"slices"
)

// bind predicts the response to PUT …/service_bindings/{id}.
func (s *state) bind(c call, a answer) (*state, string) {
	if c.part == end {
		return s.endBind(c, a)
	}

	b := s.bindings[c.binding]

	switch {
	case s.phase == absent:
		return s.unchanged(a, missing)
	case s.phase == creating, s.phase == deleting, b.phase == deleting:
		return s.unchanged(a, unprocessable, concurrency)
	case b.phase == absent:
		next, why := s.acceptOnBinding(c, a, creating)
		if why == "" {
			next.bindings[c.binding].variant = c.variant
		}

		return next, why
	case b.variant != c.variant:
		return s.unchanged(a, conflict)
	case b.phase == creating:
		return s.join(c, a)
	default:
		return s.showCredentials(c, a, ok)
	}
}

// acceptOnBinding returns the state after a new operation on a binding was accepted. The response to a synchronous request does
// not contain the ID of the operation, so the request waits for the newest operation.
func (s *state) acceptOnBinding(c call, a answer, then phase) (*state, string) {
	operations := s.bindings[c.binding].operations

	switch {
	case c.part == start:
	case !c.async:
		return nil, "want a response after the end of a new operation"
	case a.want(accepted) != "":
		return nil, a.want(accepted) + " with a new operation"
	case a.operation == "" || indexOf(operations, a.operation) >= 0:
		return nil, fmt.Sprintf("want a new operation, not %q", a.operation)
	}

	next := s.clone()
	b := &next.bindings[c.binding]
	b.phase = then
	b.operations = append(b.operations, operation{id: a.operation, progress: running, removes: then == deleting})

	if then == creating {
		b.first = len(b.operations) - 1
		replace(b.operations[:b.first], running, orphaned)
	}

	if c.part == start {
		next.wait(c)
	}

	return next, ""
}

// wait records that a synchronous request waits for the newest operation of its binding.
func (s *state) wait(c call) {
	s.waits = append(s.waits, wait{request: c.request, binding: c.binding, operation: len(s.bindings[c.binding].operations) - 1})
	slices.SortFunc(s.waits, func(one, other wait) int { return one.request - other.request })
}

// join predicts the response to a request for which an operation is already in progress.
func (s *state) join(c call, a answer) (*state, string) {
	operations := s.bindings[c.binding].operations
	current := operations[len(operations)-1]

	switch {
	case c.part == start:
		next := s.clone()
		next.wait(c)

		return next, ""
	case !c.async:
		return nil, "want a response after the end of the operation in progress"
	case a.want(accepted) != "":
		return nil, a.want(accepted) + " with the operation in progress"
	case current.id == a.operation && current.id != "":
		return s, ""
	case current.id != "" || a.operation == "" || indexOf(operations, a.operation) >= 0:
		return nil, fmt.Sprintf("want 202 with operation %q", shorten(current.id))
	}

	next := s.clone()
	next.bindings[c.binding].operations[len(operations)-1].id = a.operation

	return next, ""
}

// showCredentials predicts a response with the credentials of a ready binding. The credentials never change.
func (s *state) showCredentials(c call, a answer, status int) (*state, string) {
	known := s.bindings[c.binding].credentials

	switch {
	case a.want(status) != "":
		return nil, a.want(status)
	case c.part == start:
		return nil, "the binding is ready: want an immediate response"
	case a.credentials == "" || known != "" && a.credentials != known:
		return nil, fmt.Sprintf("want %q", known)
	case known != "":
		return s, ""
	}

	next := s.clone()
	next.bindings[c.binding].credentials = a.credentials

	return next, ""
}

// endBind predicts the response to a synchronous bind whose operation has ended.
func (s *state) endBind(c call, a answer) (*state, string) {
	next, waited, why := s.endWait(c)
	if why != "" {
		return nil, why
	}

	b := s.bindings[c.binding]
	current := waited.operation == len(b.operations)-1

	switch {
	case a.status == created && !current:
		return nil, "the binding was removed: want 409"
	case a.status == created && b.phase != ready:
		return nil, "the operation of the bind has not succeeded"
	case a.status == created:
		return next.showCredentials(c, a, created)
	case current && (b.phase == ready || b.operations[waited.operation].progress == running):
		return nil, "the binding was not removed"
	default:
		return next, a.want(conflict)
	}
}

// endWait ends the wait of a request. It returns the new state and the wait, or a reason if the request was not accepted
// earlier.
func (s *state) endWait(c call) (*state, wait, string) {
	index := slices.IndexFunc(s.waits, func(each wait) bool { return each.request == c.request })
	if index < 0 {
		return nil, wait{}, "the request has not been accepted"
	}

	next := s.clone()
	next.waits = slices.Delete(next.waits, index, index+1)

	return next, s.waits[index], ""
}

// unbind predicts the response to DELETE …/service_bindings/{id}. An unbind cancels the creation of the binding.
func (s *state) unbind(c call, a answer) (*state, string) {
	if c.part == end {
		return s.endUnbind(c, a)
	}

	switch s.bindings[c.binding].phase {
	case absent:
		return s.unchanged(a, gone)
	case deleting:
		return s.join(c, a)
	default:
	}

	next, why := s.acceptOnBinding(c, a, deleting)
	if why != "" {
		return nil, why
	}

	operations := next.bindings[c.binding].operations
	replace(operations[:len(operations)-1], running, canceled)

	return next, ""
}

// endUnbind predicts the response to a synchronous unbind whose operation has ended.
func (s *state) endUnbind(c call, a answer) (*state, string) {
	next, waited, why := s.endWait(c)
	if why != "" {
		return nil, why
	}

	shown, why := s.bindings[c.binding].operations[waited.operation].show(succeeded)
	next.bindings[c.binding].operations[waited.operation] = shown

	return next, cmp.Or(why, a.want(ok))
}

// fetchBinding predicts the response to GET …/service_bindings/{id}.
func (s *state) fetchBinding(c call, a answer) (*state, string) {
	if (s.phase == ready || s.phase == updating) && s.bindings[c.binding].phase == ready {
		return s.showCredentials(c, a, ok)
	}

	return s.unchanged(a, missing)
}

// pollBinding predicts the response to GET …/service_bindings/{id}/last_operation. Once a binding is gone, polls no longer find
// the operation that created it, because the binding would then seem to exist. If that operation failed, only polls that name it still
// find it. A poll that names no operation does not find an operation on a binding of an earlier instance.
func (s *state) pollBinding(c call, a answer) (*state, string) {
	b := s.bindings[c.binding]

	index := indexOf(b.operations, c.operation)
	if index < 0 {
		return s.unchanged(a, missing)
	}

	// The broker compares times, so it may still show an operation that was accepted while the order of the new instance was waiting.
	if index < b.former && c.operation == "" && a.status == missing {
		return s, ""
	}

	polled := b.operations[index]
	alive := b.phase != absent && index >= b.first
	shown, why := polled.show(a.state)

	switch {
	case a.status != missing:
		hidden := !alive && (shown.progress == done && !shown.removes || shown.progress == broken && c.operation == "")
		if why == "" && hidden {
			why = "the binding is gone: want 404"
		}

		why = cmp.Or(why, a.want(ok))
	case alive || polled.removes || polled.progress == running || polled.progress == broken && c.operation != "":
		why = "want 200"
	default:
		shown, why = polled.hide(c.operation != "")
	}

	if why != "" || shown == polled {
		return s, why
	}

	next := s.clone()
	next.bindings[c.binding].operations[index] = shown

	return next, ""
}

// hide returns the state of an operation that created a binding after a poll that did not find the operation. named reports
// whether the poll named the operation. In that case the operation must have succeeded, because polls find a failed operation by
// its ID.
func (o operation) hide(named bool) (operation, string) {
	switch {
	case named && (o.progress == canceled || o.progress == stopped):
		o.progress = done
	case o.progress == canceled:
		o.progress = stopped
	default:
	}

	return o, ""
}
