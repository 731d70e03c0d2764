package linear

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	clientCount   = 200
	instanceCount = 20
	// pace is the mean pause between a response to a client and the client's next request. Without the pause, the clients would
	// overload the machine and each request would take seconds. The more calls are concurrent, the less a history proves, and the
	// longer its check takes.
	pace = 300 * time.Millisecond
	// restraint is the ratio of a client's pause to the duration of its latest read. It limits the number of concurrent calls on a
	// machine that is busy with something else. On a quiet machine, reads take milliseconds, and pace determines the pause.
	restraint = 5
	// rememberedOperations is the number of operations per resource that the clients continue to poll.
	rememberedOperations = 8
)

// load is a group of clients of one or more brokers that share a database.
type load struct {
	testing.TB
	*history

	brokers []harness.Endpoint
	// id is the prefix of the instance IDs.
	id string

	mutex sync.Mutex
	// known contains the operation IDs from earlier responses, by the path of the resource.
	known map[string][]string
}

// weights returns the relative frequency of each action. Deletions are rare, so instances exist long enough for the other
// actions.
func weights() map[action]int {
	return map[action]int{
		order: 30, update: 50, remove: 3, fetch: 60, poll: 60, bind: 50, unbind: 20, fetchBinding: 60, pollBinding: 60,
	}
}

// run sends random calls from all clients for the given duration. After all operations have ended, run fetches and polls every
// resource, so that the history shows the results.
func (l *load) run(seed uint64, duration time.Duration) {
	l.Helper()

	deadline := time.Now().Add(duration)

	var clients sync.WaitGroup

	for client := range clientCount {
		random := rand.New(rand.NewPCG(seed, uint64(client)))

		clients.Go(func() {
			// Each client has a separate transport, because a shared transport opens connections in advance. The broker closes a
			// connection that has sent no request within ten seconds, and a request that is sent at that moment fails.
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()

			var latestRead time.Duration

			for time.Now().Before(deadline) && !l.Failed() {
				<-time.After(max(restraint*latestRead, time.Duration(random.Int64N(int64(2*pace)))))

				broker := l.brokers[random.IntN(len(l.brokers))]
				broker.Transport = transport

				c, began := l.draw(random), time.Now()
				l.send(client, broker, c)

				if !c.changes() {
					latestRead = time.Since(began)
				}
			}
		})
	}

	clients.Wait()
	l.settle()
}

// settle waits until the operations of each instance have ended, and fetches and polls all resources.
func (l *load) settle() {
	l.Helper()

	wait := func(c call) {
		harness.Until(l, fmt.Sprintf("the operations on %s to end", l.path(c)), func() bool {
			return l.send(0, l.brokers[0], c).state != inProgress
		})
	}

	for instance := range instanceCount {
		wait(call{action: poll, instance: instance})
		l.send(0, l.brokers[0], call{action: fetch, instance: instance})

		for binding := range bindingCount {
			wait(call{action: pollBinding, instance: instance, binding: binding})
			l.send(0, l.brokers[0], call{action: fetchBinding, instance: instance, binding: binding})
		}
	}
}

// draw returns a random call.
func (l *load) draw(random *rand.Rand) call {
	total, weights := 0, weights()
	for _, weight := range weights {
		total += weight
	}

	c := call{
		instance: random.IntN(instanceCount), binding: random.IntN(bindingCount),
		async: random.IntN(5) > 0, variant: random.IntN(8) / 7,
	}

	at := random.IntN(total)
	for _, each := range slices.Sorted(maps.Keys(weights)) {
		if at -= weights[each]; at < 0 {
			c.action = each

			break
		}
	}

	switch c.action {
	case update:
		c.nodes = nodes{min: random.IntN(4), max: random.IntN(8)}
		if c.nodes.min > 0 {
			c.nodes.min += 2
		}

		if c.nodes.max > 0 {
			c.nodes.max += 9
		}
	case bind, unbind:
		c.async = random.IntN(3) > 0
	case poll, pollBinding:
		if known := l.operations(l.path(c)); len(known) > 0 && random.IntN(3) > 0 {
			c.operation = known[random.IntN(len(known))]
		}
	default:
	}

	return c
}

// operations returns the IDs of the newest operations of the resource at the path.
func (l *load) operations(path string) []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	return l.known[path]
}

// learn stores the ID of an operation for later polls.
func (l *load) learn(path, operation string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	known := l.known[path]
	if operation == "" || slices.Contains(known, operation) {
		return
	}

	l.known[path] = append(slices.Clone(known[max(0, len(known)+1-rememberedOperations):]), operation)
}

// path returns the path of the resource that a call addresses.
func (l *load) path(c call) string {
	instance := fmt.Sprintf("%s-%d", l.id, c.instance)
	if c.onBinding() {
		return harness.BindingPath(instance, fmt.Sprintf("b%d", c.binding))
	}

	return harness.InstancePath(instance)
}

// send sends a call to a broker, records the call and its response, and returns the response.
func (l *load) send(client int, broker harness.Endpoint, c call) answer {
	request, invoked := l.begin()
	c.request = request

	reply, err := broker.Do(l.request(c))
	if err != nil {
		l.Errorf("%s: %v", c, err)

		return answer{}
	}

	if a := answerOf(reply); reply.Status < http.StatusInternalServerError || a.text == textStillRunning {
		l.learn(l.path(c), a.operation)
		l.record(client, c, invoked, a)

		return a
	}

	l.Errorf("%s of instance %d: status %d although no dependency of the broker failed: %s", c, c.instance, reply.Status, reply.Raw)

	return answer{}
}

// request returns the HTTP request of a call.
func (l *load) request(c call) harness.Call {
	path, query := l.path(c), []string{}
	method, body := http.MethodGet, map[string]any(nil)

	if c.async {
		query = append(query, "accepts_incomplete=true")
	}

	switch c.action {
	case order:
		method, body = http.MethodPut, harness.Order(harness.PlanAWS)
		body["parameters"] = map[string]any{
			"region": regions()[c.variant], "autoScalerMin": initialNodes().min, "autoScalerMax": initialNodes().max,
		}
	case update:
		method, body = http.MethodPatch, map[string]any{"service_id": harness.ServiceID, "parameters": parametersOf(c.nodes)}
	case bind:
		method, body = http.MethodPut, map[string]any{
			"service_id": harness.ServiceID, "plan_id": harness.PlanAWS, "parameters": map[string]any{"expiration_seconds": 3600 + c.variant},
		}
	case remove, unbind:
		method, query = http.MethodDelete, append(query, "service_id="+harness.ServiceID, "plan_id="+harness.PlanAWS)
	case poll, pollBinding:
		path, query = path+"/last_operation", nil
		if c.operation != "" {
			query = []string{"operation=" + c.operation}
		}
	default:
		query = nil
	}

	if len(query) > 0 {
		path += "?" + strings.Join(query, "&")
	}

	return harness.Call{Method: method, Path: path, Body: encode(l, body)}
}

func parametersOf(n nodes) map[string]any {
	parameters := map[string]any{}
	if n.min > 0 {
		parameters["autoScalerMin"] = n.min
	}

	if n.max > 0 {
		parameters["autoScalerMax"] = n.max
	}

	return parameters
}

// encode encodes a body as JSON. It returns an empty string for a nil body.
func encode(tb testing.TB, body map[string]any) string {
	if body == nil {
		return ""
	}

	encoded, err := json.Marshal(body)
	if err != nil {
		tb.Error(err)
	}

	return string(encoded)
}
