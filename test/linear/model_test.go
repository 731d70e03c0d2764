package linear

import (
	"fmt"
	"hash/maphash"
	"net/http"
	"slices"
	"strings"
)

// Statuses of responses.
const (
	ok            = http.StatusOK
	created       = http.StatusCreated
	accepted      = http.StatusAccepted
	missing       = http.StatusNotFound
	conflict      = http.StatusConflict
	gone          = http.StatusGone
	unprocessable = http.StatusUnprocessableEntity
)

// Error codes of responses with the status 422.
const (
	asyncRequired = "AsyncRequired"
	concurrency   = "ConcurrencyError"
)

// Operation states in responses to polls.
const (
	inProgress = "in progress"
	succeeded  = "succeeded"
	failed     = "failed"
)

// phase is the current phase of an instance or a binding. Bindings are never updating.
type phase string

const (
	absent   phase = "absent"
	creating phase = "creating"
	ready    phase = "ready"
	updating phase = "updating"
	deleting phase = "deleting"
)

// progress is the state of an operation in the model.
type progress string

const (
	// running operations have neither ended nor been canceled.
	running progress = "running"
	// canceled operations were canceled before a response showed their end. They may have ended before the cancellation.
	canceled progress = "canceled"
	// orphaned operations remove a binding whose instance is gone, or is being deleted and may be gone. They may have ended.
	orphaned progress = "orphaned"
	// stopped operations have ended, but no response has shown their outcome yet.
	stopped progress = "stopped"
	// done operations have succeeded, and broken operations have failed.
	done   progress = "done"
	broken progress = "broken"
)

// operation is an accepted operation. Its ID is empty until a response shows the ID, because responses to synchronous requests
// contain none.
type operation struct {
	id       string
	progress progress
	// removes reports whether the operation removes a binding.
	removes bool
}

// binding is a binding in the model. Its phase is the phase of the newest operation.
type binding struct {
	phase phase
	// variant is the variant of the accepted bind.
	variant int
	// credentials is a digest of the credentials. It is empty until a response shows them.
	credentials string
	// operations contains the operations of the binding ID, newest last.
	operations []operation
	// first is the index of the operation that created the binding. It is unused if the phase is absent.
	first int
	// former is the number of operations on bindings of earlier instances with the same ID. It is 0 while there is no instance.
	former int
}

// wait is a synchronous request that was accepted and has no response yet.
type wait struct {
	request, binding int
	// operation is the index of the operation in the operations of the binding.
	operation int
}

// bindingCount is the number of binding IDs of each instance.
const bindingCount = 3

// state is an instance with its bindings. States are immutable: the model changes only copies.
//
// Operations end at any time, without a call. The model assumes that an operation has not ended until a response shows its end.
// This assumption is safe: while no response depends on the end of an operation, the model accepts the same calls whether the
// operation is running or has ended.
type state struct {
	phase phase
	// variant is the variant of the accepted order. Updates do not change it.
	variant int
	// nodes contains the current parameters. target contains the parameters after the update in progress.
	nodes, target nodes
	// operations contains the operations of the instance ID, newest last. The phase is the phase of the newest operation, unless the
	// phase is ready.
	operations []operation
	bindings   [bindingCount]binding
	waits      []wait
}

// clone returns a copy that callers may change.
func (s *state) clone() *state {
	copied := *s
	copied.operations, copied.waits = slices.Clone(s.operations), slices.Clone(s.waits)

	for i := range copied.bindings {
		copied.bindings[i].operations = slices.Clone(s.bindings[i].operations)
	}

	return &copied
}

// equal reports whether two states are the same.
func (s *state) equal(other *state) bool {
	if s == other {
		return true
	}

	if s.phase != other.phase || s.variant != other.variant || s.nodes != other.nodes || s.target != other.target ||
		!slices.Equal(s.operations, other.operations) || !slices.Equal(s.waits, other.waits) {
		return false
	}

	return slices.EqualFunc(s.bindings[:], other.bindings[:], func(one, other binding) bool {
		return one.phase == other.phase && one.variant == other.variant && one.credentials == other.credentials &&
			one.first == other.first && one.former == other.former && slices.Equal(one.operations, other.operations)
	})
}

// hashSeed is the seed of all hashes, so that the hashes within a test run are comparable.
var hashSeed = maphash.MakeSeed()

// hash returns the same number for equal states. It ignores fields that rarely distinguish states.
func (s *state) hash() uint64 {
	type part struct {
		phase       phase
		credentials string
		operations  int
		last        progress
	}

	type key struct {
		nodes, target nodes
		waits         int
		parts         [1 + bindingCount]part
	}

	partOf := func(phase phase, credentials string, operations []operation) part {
		p := part{phase: phase, credentials: credentials, operations: len(operations)}
		if p.operations > 0 {
			p.last = operations[p.operations-1].progress
		}

		return p
	}

	k := key{nodes: s.nodes, target: s.target, waits: len(s.waits)}
	k.parts[bindingCount] = partOf(s.phase, "", s.operations)

	for i, b := range s.bindings {
		k.parts[i] = partOf(b.phase, b.credentials, b.operations)
	}

	return maphash.Comparable(hashSeed, k)
}

// String describes the state, with the two newest operations of the instance and of each binding.
func (s *state) String() string {
	var text strings.Builder

	fmt.Fprintf(&text, "%s, variant %d, %+v", s.phase, s.variant, s.nodes)

	if s.phase == updating {
		fmt.Fprintf(&text, " to %+v", s.target)
	}

	text.WriteString(newest(s.operations))

	for i, b := range s.bindings {
		fmt.Fprintf(&text, "; binding %d %s, variant %d %s%s", i, b.phase, b.variant, b.credentials, newest(b.operations))
	}

	return text.String()
}

func newest(operations []operation) string {
	var text strings.Builder
	for _, each := range operations[max(0, len(operations)-2):] {
		fmt.Fprintf(&text, ", operation %q %s", shorten(each.id), each.progress)
	}

	return text.String()
}

// initial returns the state of an unused instance ID.
func initial() *state {
	s := &state{phase: absent}
	for i := range s.bindings {
		s.bindings[i].phase = absent
	}

	return s
}

// step returns the state after a call with its response, or the reason why the response is wrong. It first tries the current
// state. It then tries the states in which the operation in progress of the instance or of the called binding has ended, or in which
// the broker has started to clean up the called binding.
func (s *state) step(c call, a answer) (*state, string) {
	next, why := s.respond(c, a)
	if why == "" {
		return next, ""
	}

	reasons := []string{why}

	// The end of a deletion also removes the bindings, so endOperation comes last. After the end of an operation on a binding,
	// the deletion can still end. The reverse is impossible.
	var candidates []*state
	if c.onBinding() {
		candidates = append(candidates, s.endBinding(c.binding))
	}

	candidates = append(candidates, s.endOperation())

	if c.onBinding() {
		if cleaned := s.cleanUp(c.binding); cleaned != nil {
			candidates = append(candidates, cleaned, cleaned.endBinding(c.binding))
		}
	}

	for _, ended := range candidates {
		if ended == nil {
			continue
		}

		next, reason := ended.respond(c, a)
		if reason == "" {
			return next, ""
		}

		reasons = append(reasons, reason)
	}

	if a.pending { // the response came after the examined calls, so the call may have had no effect yet
		return s, ""
	}

	return nil, strings.Join(reasons, "; if the operation had ended: ")
}

// respond is like [state.step], but assumes that no operation has ended since the previous call.
func (s *state) respond(c call, a answer) (*state, string) {
	switch c.action {
	case order:
		return s.order(c, a)
	case update:
		return s.update(c, a)
	case remove:
		return s.remove(c, a)
	case fetch:
		return s.fetch(a)
	case poll:
		return s.poll(c, a)
	case bind:
		return s.bind(c, a)
	case unbind:
		return s.unbind(c, a)
	case fetchBinding:
		return s.fetchBinding(c, a)
	case pollBinding:
		return s.pollBinding(c, a)
	default:
		return nil, "the model has no such action"
	}
}

// endOperation returns the state after the instance's operation in progress has succeeded, or nil if there is none. When a
// deletion ends, all older operations of the instance have ended too, and the bindings are gone. Operations on bindings can
// still be in progress then.
func (s *state) endOperation() *state {
	if s.phase == absent || s.phase == ready {
		return nil
	}

	ended := s.clone()
	ended.operations[len(ended.operations)-1].progress = done

	if s.phase != deleting {
		ended.phase, ended.nodes, ended.target = ready, s.nodes.merged(s.target), nodes{}

		return ended
	}

	ended.phase, ended.variant, ended.nodes, ended.target = absent, 0, nodes{}, nodes{}
	replace(ended.operations, canceled, stopped)

	for i := range ended.bindings {
		b := &ended.bindings[i]
		*b = binding{phase: absent, operations: b.operations}

		replace(b.operations, running, orphaned)
	}

	return ended
}

// replace changes the progress of all operations whose progress is old. with is the new progress.
func replace(operations []operation, old, with progress) {
	for i := range operations {
		if operations[i].progress == old {
			operations[i].progress = with
		}
	}
}

// endBinding returns the state after a binding's operation in progress has succeeded, or nil if there is none. If the instance is
// being deleted, a removed binding may be gone with the instance instead, so its removal may still be in progress.
func (s *state) endBinding(index int) *state {
	b := s.bindings[index]
	if len(b.operations) == 0 || b.operations[len(b.operations)-1].progress != running {
		return nil
	}

	ended := s.clone()
	bound := &ended.bindings[index]
	bound.operations[len(bound.operations)-1].progress = done

	if b.phase == creating || b.phase == ready {
		bound.phase = ready
	} else {
		*bound = binding{phase: absent, operations: bound.operations, former: bound.former}

		if s.phase == deleting {
			bound.operations[len(bound.operations)-1].progress = orphaned
		}
	}

	return ended
}

// cleanUp returns the state after the broker has started to remove a binding whose creation was canceled, or nil if there is none.
// The broker starts such removals in the background, every minute. If the binding is gone with its instance, the removal started
// earlier.
func (s *state) cleanUp(index int) *state {
	b := s.bindings[index]
	if len(b.operations) == 0 || b.phase != creating && b.phase != absent {
		return nil
	}

	last := len(b.operations) - 1

	switch former := b.operations[last]; {
	case former.removes:
		return nil
	case former.progress != canceled && former.progress != stopped && former.progress != broken:
		return nil
	}

	cleaned := s.clone()
	bound := &cleaned.bindings[index]
	replace(bound.operations[last:], canceled, stopped)

	removal := operation{progress: orphaned, removes: true}
	if bound.phase == creating {
		bound.phase, removal.progress = deleting, running
	}

	bound.operations = append(bound.operations, removal)

	if last < bound.former {
		bound.former++
	}

	return cleaned
}

// show returns the operation after a poll that reports the state shown, or the reason why the operation cannot have that state.
func (o operation) show(shown string) (operation, string) {
	switch {
	case shown == inProgress && (o.progress == running || o.progress == canceled || o.progress == orphaned),
		shown == succeeded && o.progress == done, shown == failed && o.progress == broken:
		return o, ""
	case shown == succeeded && (o.progress == canceled || o.progress == stopped || o.progress == orphaned):
		o.progress = done
	case shown == failed && (o.progress == canceled || o.progress == stopped):
		o.progress = broken
	default:
		return o, fmt.Sprintf("the operation is %s, not %q", o.progress, shown)
	}

	return o, ""
}

// want returns an empty reason if the response has the status and the error code.
func (a answer) want(status int, code ...string) string {
	if a.status == status && strings.Join(code, "") == a.code {
		return ""
	}

	return strings.TrimSpace(fmt.Sprintf("want %d %s", status, strings.Join(code, "")))
}

// unchanged returns the unchanged state and an empty reason, or a reason if the response does not have the status and the error
// code.
func (s *state) unchanged(a answer, status int, code ...string) (*state, string) {
	return s, a.want(status, code...)
}
