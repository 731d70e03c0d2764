package ebctl_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// scenario is the data of a fakeBroker. Test scripts contain it as YAML.
type scenario struct {
	// Username and Password are the credentials that requests must have. If both are empty, requests need no credentials.
	Username string `json:"username"`
	Password string `json:"password"`
	// Date is the time of the broker's clock in HTTP format. The default is the time of ebctl's clock.
	Date string `json:"date"`
	// PageSize limits the number of entries on a page. 0 means no limit.
	PageSize int                   `json:"pageSize"`
	Runtimes []operatorapi.Runtime `json:"runtimes"`
	// Bindings contains the bindings of all instances.
	Bindings []operatorapi.Binding `json:"bindings"`
	// Operations contains each operation as a sequence of frames. Each request for an operation returns its next frame; the last
	// frame repeats.
	Operations []script `json:"operations"`
	// ListsAdvance makes each request for a list of operations advance all operations to their next frame, like requests for a
	// single operation.
	ListsAdvance bool `json:"listsAdvance"`
	// Provision, Update, Expire and Deprovision are the IDs of the operations that these requests start. If the ID is empty, the
	// request completes immediately.
	Provision   string `json:"provision"`
	Update      string `json:"update"`
	Expire      string `json:"expire"`
	Deprovision string `json:"deprovision"`
	// Upgrade is the response to requests for upgrades.
	Upgrade operatorapi.AcceptedUpgrade `json:"upgrade"`
	// Adopted is the response to requests to adopt a Shoot.
	Adopted operatorapi.AdoptedShoot `json:"adopted"`
	// CatalogProblem is the error in the catalog files, if its message is not empty.
	CatalogProblem operatorapi.CatalogProblem `json:"catalogProblem"`
	// Version is the version of the broker. The default is the version of ebctl.
	Version string `json:"version"`
	// Systems are the systems that the broker calls.
	Systems []operatorapi.System `json:"systems"`
	// Configuration is the configuration of the broker.
	Configuration []operatorapi.Setting `json:"configuration"`
	// Kubeconfig is the admin kubeconfig of all runtimes.
	Kubeconfig operatorapi.AdminKubeconfig `json:"kubeconfig"`
	// Interventions lists the allowed interventions. The response to all others is 409.
	Interventions []allowedIntervention `json:"interventions"`
	// Processes are the processes of the broker.
	Processes []operatorapi.Process `json:"processes"`
	// Events are the events of the broker, in the order of their positions.
	Events []operatorapi.CloudEvent `json:"events"`
	// Webhooks are the webhooks of the broker. Deliveries are their undelivered events.
	Webhooks   []operatorapi.Webhook         `json:"webhooks"`
	Deliveries []operatorapi.WebhookDelivery `json:"deliveries"`
	// Jobs are the jobs of the broker. A run returns the newest run of the job.
	Jobs []operatorapi.Job `json:"jobs"`
	// Quotas are the quotas of the broker. Their groups are filtered by account.
	Quotas []operatorapi.Quota `json:"quotas"`
	// Platforms are the configured platforms.
	Platforms []operatorapi.Platform `json:"platforms"`
	// Audit is the audit log, newest entry first.
	Audit []operatorapi.AuditEntry `json:"audit"`
	// AuditChain are the records of the audit log's chain. Their hashes are computed. AuditTampered is the number of the record whose user
	// is changed afterwards, or 0. AuditUnchained are the rows without a record.
	AuditChain     []operatorapi.AuditRecord    `json:"auditChain"`
	AuditTampered  int64                        `json:"auditTampered"`
	AuditUnchained []operatorapi.AuditUnchained `json:"auditUnchained"`
	// Accounts are the accounts that have data. Erasures are the results of requests to erase an account, in order.
	Accounts []operatorapi.Account `json:"accounts"`
	Erasures []operatorapi.Erasure `json:"erasures"`
	// CloudAccounts are the accounts of the account pool.
	CloudAccounts []operatorapi.CloudAccount `json:"cloudAccounts"`
	// Orchestrations are the orchestrations, newest first, with their targets. Retried is the response to a retry.
	Orchestrations []operatorapi.Orchestration `json:"orchestrations"`
	// OrchestrationFrames are the later responses for an orchestration, by ID.
	OrchestrationFrames map[string][]operatorapi.Orchestration `json:"orchestrationFrames"`
	Targets             []operatorapi.OrchestrationOperation   `json:"targets"`
	Retried             operatorapi.OrchestrationRetried       `json:"retried"`
	// Applied is the response to the application of a plan.
	Applied operatorapi.AppliedPlan `json:"applied"`
	// Credentials are the kubeconfigs that other systems have.
	Credentials []operatorapi.Credential `json:"credentials"`
	// Differences and Restorations are the pages of these responses, in order.
	Differences  []operatorapi.DifferenceList `json:"differences"`
	Restorations []operatorapi.Restoration    `json:"restorations"`
	// Faults lists the calls that fail.
	Faults []fault `json:"faults"`
}

// sealedChain returns the records with their hashes. Salts are random, so all calls after the first return the same records.
func (s *scenario) sealedChain() []operatorapi.AuditRecord {
	previous := ""

	for i := range s.AuditChain {
		record := &s.AuditChain[i]
		if record.Hash == "" {
			record.Number = int64(i) + 1
			record.Seal(previous)

			if record.Number == s.AuditTampered {
				record.Row.OrderedBy = "mallory"
			}
		}

		previous = record.Hash
	}

	return s.AuditChain
}

// script is an operation as a sequence of frames.
type script struct {
	ID     string  `json:"id"`
	Frames []frame `json:"frames"`
}

// allowedIntervention is an intervention that the broker accepts.
type allowedIntervention struct {
	// Operation is the ID of the operation.
	Operation string `json:"operation"`
	// Verb is cancel, retry or skip.
	Verb string `json:"verb"`
	// Successor is the ID of the operation that a retry starts. The response contains the current frame of this operation.
	Successor string `json:"successor"`
}

// frame is the response to one request for an operation.
type frame struct {
	// Operation contains the fields that differ from the previous frame. The value null removes a field.
	Operation map[string]any `json:"operation"`
	// Fault, if set, is returned instead of the operation.
	Fault *fault `json:"fault"`
}

// fault is an error response.
type fault struct {
	// Call is the method and path of the request that fails. It is empty in a frame.
	Call string `json:"call"`
	// Cut closes the connection instead of sending a response.
	Cut bool `json:"cut"`
	// Status, RetryAfter (in seconds) and Body define the response.
	Status     int    `json:"status"`
	RetryAfter int    `json:"retryAfter"`
	Body       string `json:"body"`
}

// parseScenario parses a scenario in YAML. Unknown fields are an error.
func parseScenario(text []byte) (scenario, error) {
	var parsed scenario
	if err := yaml.UnmarshalStrict(text, &parsed); err != nil {
		return scenario{}, fmt.Errorf("reading the scenario: %w", err)
	}

	return parsed, nil
}

// playback returns the frames of a script as complete operations.
type playback struct {
	frames []playedFrame
	asked  int
}

type playedFrame struct {
	operation operatorapi.Operation
	fault     *fault
}

// complete returns the script with complete operations: each frame inherits the fields of the previous one.
func (s script) complete() (*playback, error) {
	fields := map[string]any{"operationID": s.ID}
	result := &playback{}

	for number, next := range s.Frames {
		maps.Copy(fields, next.Operation)

		encoded, err := json.Marshal(fields)
		if err != nil {
			return nil, fmt.Errorf("operation %s, frame %d: %w", s.ID, number, err)
		}

		full := playedFrame{fault: next.Fault}
		if err := json.Unmarshal(encoded, &full.operation); err != nil {
			return nil, fmt.Errorf("operation %s, frame %d: %w", s.ID, number, err)
		}

		result.frames = append(result.frames, full)
	}

	if len(result.frames) == 0 {
		return nil, fmt.Errorf("operation %s has no frame", s.ID)
	}

	return result, nil
}

// current returns the frame for the next request.
func (t *playback) current() playedFrame { return t.frames[min(t.asked, len(t.frames)-1)] }

// fakeClock is a clock that advances by the duration of each wait, so waiting takes no real time. It is not safe for concurrent
// use.
type fakeClock struct{ now time.Time }

func newFakeClock(now time.Time) *fakeClock { return &fakeClock{now: now} }

func (c *fakeClock) Now() time.Time { return c.now }

// After advances the clock by d and returns a channel that is ready to receive.
func (c *fakeClock) After(d time.Duration) <-chan time.Time {
	c.now = c.now.Add(d)

	passed := make(chan time.Time, 1)
	passed <- c.now

	return passed
}
