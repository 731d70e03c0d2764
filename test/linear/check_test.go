package linear

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	// checkLimit limits the time of the search for an order of one history. The search usually takes less than a second.
	checkLimit = time.Minute
	// prefixLimit limits the time of the search for one prefix of a history that is not linearizable.
	prefixLimit = 3 * time.Second
	// explained is the maximum number of failures for which a test prints an explanation.
	explained = 2
	// histories is the folder for visualizations. Git ignores it.
	histories = "testdata/histories"
)

// input returns the call of a recorded operation.
func input(o porcupine.Operation) call {
	c, _ := o.Input.(call)

	return c
}

// output returns the response of a recorded operation.
func output(o porcupine.Operation) answer {
	a, _ := o.Output.(answer)

	return a
}

// model returns the Porcupine model of an instance.
func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return initial() },
		Step: func(before, in, out any) (bool, any) {
			s, _ := before.(*state)
			c, _ := in.(call)
			a, _ := out.(answer)
			next, why := s.step(c, a)

			return why == "", next
		},
		Equal: func(one, other any) bool {
			first, _ := one.(*state)
			second, _ := other.(*state)

			return first.equal(second)
		},
		Hash: func(of any) uint64 {
			s, _ := of.(*state)

			return s.hash()
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%s → %s", in, out) },
		DescribeState:     func(s any) string { return fmt.Sprint(s) },
	}
}

// partition groups the calls by the index of their instance.
func partition(calls []porcupine.Operation) map[int][]porcupine.Operation {
	partitions := map[int][]porcupine.Operation{}

	for _, each := range calls {
		instance := input(each).instance
		partitions[instance] = append(partitions[instance], each)
	}

	for instance, calls := range partitions {
		partitions[instance] = withoutImplied(calls)
	}

	return partitions
}

// withoutImplied drops calls that cannot make a history illegal, which makes the search much faster. It drops a call if the
// history has another call with the same content and the same response, whose interval lies within the interval of the first.
// The longer call can then take effect right after the shorter one, because the model accepts every call a second time. Parts
// of synchronous requests are never dropped, because each part has an effect.
func withoutImplied(calls []porcupine.Operation) []porcupine.Operation {
	type pair struct {
		call   call
		answer answer
	}

	latestFirst := slices.SortedStableFunc(slices.Values(calls), func(one, other porcupine.Operation) int {
		return cmp.Or(cmp.Compare(other.Call, one.Call), cmp.Compare(one.Return, other.Return))
	})
	earliestReturn := map[pair]int64{}

	kept := latestFirst[:0]

	for _, each := range latestFirst {
		same := pair{input(each), output(each)}
		same.call.request = 0

		if earliest, found := earliestReturn[same]; same.call.part == whole && found && earliest <= each.Return {
			continue
		}

		earliestReturn[same] = each.Return

		kept = append(kept, each)
	}

	return kept
}

// check fails the test unless the calls of each instance are linearizable. It explains the first failures. The file names of
// the visualizations start with name.
func check(t *testing.T, name string, calls []porcupine.Operation) {
	t.Helper()

	failures := 0

	for instance, partition := range partition(calls) {
		result := porcupine.CheckOperationsTimeout(model(), partition, checkLimit)
		if result == porcupine.Ok {
			continue
		}

		if failures++; failures > explained {
			t.Errorf("the history of instance %d is not linearizable either (%s); the other histories are not checked", instance, result)

			return
		}

		smallest := shortest(partition)
		_, info := porcupine.CheckOperationsVerbose(model(), smallest, prefixLimit)
		path := filepath.Join(histories, fmt.Sprintf("%s-%d.html", strings.ReplaceAll(name, "/", "-"), instance))

		t.Errorf("the history of instance %d is not linearizable (%s), see test/linear/%s\n%s", instance, result, path, explain(smallest, info))

		if err := os.MkdirAll(histories, 0o755); err != nil {
			t.Error(err)
		}

		if err := porcupine.VisualizePath(model(), info, path); err != nil {
			t.Error(err)
		}
	}
}

// shortest returns the shortest prefix of a history that is not linearizable. If a search takes too long, it returns the
// shortest such prefix found so far.
func shortest(calls []porcupine.Operation) []porcupine.Operation {
	byReturn := slices.SortedFunc(slices.Values(calls), func(one, other porcupine.Operation) int { return cmp.Compare(one.Return, other.Return) })

	low, high := 0, len(byReturn)
	for low+1 < high {
		middle := (low + high) / 2

		switch porcupine.CheckOperationsTimeout(model(), prefix(byReturn, middle), prefixLimit) {
		case porcupine.Illegal:
			high = middle
		case porcupine.Ok:
			low = middle
		default:
			return prefix(byReturn, high)
		}
	}

	return prefix(byReturn, high)
}

// prefix returns the first length calls of a history, in the order of their responses. It adds the calls that were in progress
// at the last of these responses and may already have had an effect. The added calls are pending, because they may also have
// had no effect yet.
func prefix(byReturn []porcupine.Operation, length int) []porcupine.Operation {
	calls := slices.Clone(byReturn[:length])
	if length == 0 {
		return calls
	}

	for _, each := range byReturn[length:] {
		if each.Call <= calls[length-1].Return && input(each).changes() {
			a := output(each)
			a.pending = true
			each.Output, each.Return = a, math.MaxInt64
			calls = append(calls, each)
		}
	}

	return calls
}

// explain describes where the search for an order failed: the end of the longest order, the state after it, and why none of the
// next calls fits.
func explain(calls []porcupine.Operation, info porcupine.LinearizationInfo) string {
	const shown = 8

	var longest []int

	for _, partial := range info.PartialLinearizations()[0] {
		if len(partial) > len(longest) {
			longest = partial
		}
	}

	s, left := initial(), slices.Clone(calls)

	var text strings.Builder

	last := calls[0]
	for _, each := range calls {
		if each.Return != math.MaxInt64 && each.Return > last.Return {
			last = each
		}
	}

	fmt.Fprintf(&text, "no order of the calls explains the response to:\n  %s\nthe longest order of the calls up to that response ends with:\n", describe(last))

	for i, index := range longest {
		s, _ = s.step(input(calls[index]), output(calls[index]))

		if i >= len(longest)-shown {
			fmt.Fprintf(&text, "  %s\n", describe(calls[index]))
		}
	}

	used := map[int]bool{}
	for _, index := range longest {
		used[index] = true
	}

	left = left[:0]

	for i, each := range calls {
		if !used[i] {
			left = append(left, each)
		}
	}

	fmt.Fprintf(&text, "state after these %d calls: %s\nnone of the next calls fits:\n", len(longest), s)

	first := int64(math.MaxInt64) // the next call must start before the first response to a remaining call
	for _, each := range left {
		first = min(first, each.Return)
	}

	for _, each := range left {
		if _, why := s.step(input(each), output(each)); each.Call <= first {
			fmt.Fprintf(&text, "  %s: %s\n", describe(each), cmp.Or(why, "possible, but no complete order continues with it"))
		}
	}

	return text.String()
}

// describe formats a call with its response and times.
func describe(o porcupine.Operation) string {
	returned := "…"
	if o.Return != math.MaxInt64 {
		returned = time.Duration(o.Return).Round(time.Microsecond).String()
	}

	return fmt.Sprintf("%s to %s, client %d: %s → %s", time.Duration(o.Call).Round(time.Microsecond), returned, o.ClientId, input(o), output(o))
}
