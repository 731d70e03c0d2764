package linear

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/environment-broker/environment-broker/test/harness"
)

// action names a method and a route of the API.
type action string

// Actions on an instance, followed by actions on a binding.
const (
	order  action = "order"
	update action = "update"
	remove action = "delete"
	fetch  action = "fetch"
	poll   action = "poll"

	bind         action = "bind"
	unbind       action = "unbind"
	fetchBinding action = "fetch binding"
	pollBinding  action = "poll binding"
)

// part is the part of a request that a recorded call covers. A synchronous bind or unbind takes effect twice: when the broker
// accepts its operation, and when the operation has ended. It is therefore recorded as two calls with the same times.
type part string

const (
	whole part = ""
	start part = " (accepted)"
	end   part = " (ended)"
)

// nodes contains the parameters autoScalerMin and autoScalerMax. Zero means that the parameter is absent.
type nodes struct{ min, max int }

// merged returns the parameters after an update.
func (n nodes) merged(update nodes) nodes {
	return nodes{min: cmp.Or(update.min, n.min), max: cmp.Or(update.max, n.max)}
}

// call is a request, or a part of it.
type call struct {
	action action
	part   part
	// request is the number of the request in its history. Both parts of a request have the same number.
	request int
	// instance and binding are indexes. Actions on an instance do not use binding.
	instance, binding int
	// async reports whether the client accepts an asynchronous operation.
	async bool
	// variant distinguishes orders, or binds, that have different parameters.
	variant int
	// nodes contains the parameters of an update.
	nodes nodes
	// operation is the operation ID in a poll, or empty.
	operation string
}

// String describes the call without its instance, because all calls of a partition concern the same instance.
func (c call) String() string {
	text := string(c.action)

	if c.onBinding() {
		text += fmt.Sprintf(" %d", c.binding)
	}

	switch c.action {
	case order, bind:
		text += fmt.Sprintf(" variant %d", c.variant)
	case update:
		text += fmt.Sprintf(" %+v", c.nodes)
	case poll, pollBinding:
		text += " " + shorten(c.operation)
	default:
	}

	if c.changes() && !c.async {
		text += " synchronously"
	}

	return text + string(c.part)
}

// onBinding reports whether the call is for a binding, not for the instance.
func (c call) onBinding() bool {
	switch c.action {
	case bind, unbind, fetchBinding, pollBinding:
		return true
	default:
		return false
	}
}

// changes reports whether the call starts an operation.
func (c call) changes() bool {
	switch c.action {
	case order, update, remove, bind, unbind:
		return true
	default:
		return false
	}
}

// answer is the part of a response that the model predicts.
type answer struct {
	status int
	// code is the error code, and text the error description.
	code, text string
	// operation is the ID of an accepted operation. state is the state that a poll returns.
	operation, state string
	// variant and nodes describe a fetched instance.
	variant int
	nodes   nodes
	// credentials is a digest of a binding's credentials.
	credentials string
	// pending reports whether the examined part of the history ends before the response arrives.
	pending bool
}

func (a answer) String() string {
	parts := []string{strconv.Itoa(a.status)}

	for _, each := range []string{a.code, a.state, shorten(a.operation), a.credentials} {
		if each != "" {
			parts = append(parts, each)
		}
	}

	if a.nodes != (nodes{}) {
		parts = append(parts, fmt.Sprintf("variant %d %+v", a.variant, a.nodes))
	}

	if a.text != "" && a.code == "" {
		parts = append(parts, fmt.Sprintf("%q", a.text))
	}

	return strings.Join(parts, " ")
}

// shorten returns the first characters of an ID, which suffice to recognize it.
func shorten(id string) string { return id[:min(len(id), 8)] }

// regions maps the variants of an order to regions.
func regions() []string { return []string{"eu-west-1", "eu-central-1"} }

// unknownVariant is the variant of an instance in an unexpected region.
const unknownVariant = -1

// answerOf extracts from a response the part that the model predicts.
func answerOf(reply harness.Reply) answer {
	a := answer{
		status: reply.Status, code: reply.Text("error"), operation: reply.Text("operation"), state: reply.Text("state"),
	}

	if a.state == "" || a.state == failed {
		a.text = reply.Text("description")
	}

	if parameters := reply.Object("parameters"); parameters["region"] != nil {
		a.variant = unknownVariant

		for i, region := range regions() {
			if parameters["region"] == region {
				a.variant = i
			}
		}

		a.nodes = nodes{min: number(parameters["autoScalerMin"]), max: number(parameters["autoScalerMax"])}
	}

	if kubeconfig, ok := reply.Object("credentials")["kubeconfig"].(string); ok {
		sum := sha256.Sum256([]byte(kubeconfig))
		a.credentials = "credentials-" + hex.EncodeToString(sum[:4])
	}

	return a
}

func number(value any) int {
	float, _ := value.(float64)

	return int(float)
}

// history records calls. It may be used concurrently.
type history struct {
	began time.Time

	mutex    sync.Mutex
	requests int
	calls    []porcupine.Operation
	counts   map[string]int
}

func newHistory() *history { return &history{began: time.Now(), counts: map[string]int{}} }

// begin returns a new request number and the time at which the request is invoked.
func (h *history) begin() (request int, at time.Duration) {
	h.mutex.Lock()
	defer h.mutex.Unlock()

	h.requests++

	return h.requests, time.Since(h.began)
}

// record adds a request and its response, which has just arrived. client is the number of the client that sent the request.
func (h *history) record(client int, c call, invoked time.Duration, a answer) {
	h.mutex.Lock()
	defer h.mutex.Unlock()

	returned := time.Since(h.began)
	h.counts[kindOf(c, a)]++

	for _, each := range partsOf(c, a) {
		h.calls = append(h.calls, porcupine.Operation{
			ClientId: client, Input: each, Call: invoked.Nanoseconds(), Output: a, Return: returned.Nanoseconds(),
		})
	}
}

// Descriptions in the broker's responses. They distinguish outcomes of a synchronous request that have the same status.
const (
	textBindingGone  = "The binding was removed, or its creation was canceled, before it was ready."
	textStillRunning = "The operation did not finish in time and continues in the background. Send the same request again."
	textOvertaken    = "The request was accepted, but another operation is creating or removing the runtime. Send the same request again after that operation has ended."
)

// partsOf splits a synchronous request into its parts if the broker accepted an operation for it. If the response says that the
// operation continues, or that the removal of the runtime has prevented it, partsOf returns only the acceptance. Other requests have
// one part.
func partsOf(c call, a answer) []call {
	accepted, ended := c, c
	accepted.part, ended.part = start, end

	switch {
	case c.async || c.action != bind && c.action != unbind:
		return []call{c}
	case a.text == textStillRunning, a.text == textOvertaken:
		return []call{accepted}
	case c.action == bind && (a.status == created || a.text == textBindingGone), c.action == unbind && a.status == ok:
		return []call{accepted, ended}
	default:
		return []call{c}
	}
}

// kindOf classifies a call and its response, so that a run can count the kinds it has exercised.
func kindOf(c call, a answer) string {
	kind := string(c.action)
	if c.changes() && !c.async {
		kind += " synchronously"
	}

	return strings.Join(strings.Fields(fmt.Sprintf("%s: %d %s %s", kind, a.status, a.code, a.state)), " ")
}
