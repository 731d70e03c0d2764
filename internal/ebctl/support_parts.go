package ebctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/explaintext"
	"github.com/environment-broker/environment-broker/internal/ebctl/supportbundle"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// Maximum numbers of entries in a support bundle.
const (
	bundleStuck      = 20  // stuck operations with their timelines
	bundleFailed     = 5   // newest failed operations with their timelines
	bundleOperations = 10  // newest operations of the instance with their timelines
	bundleEntries    = 100 // entries of a list
)

// bundleCollector adds the documents of one service to a support bundle.
type bundleCollector struct {
	*supportbundle.Bundle

	session *session
	client  *brokerclient.Client
	// folder is the service's folder in the archive.
	folder string
}

// bundleSubject is the instance and the operation that a support bundle is about. Both may be empty.
type bundleSubject struct {
	operationID, instanceID string
	// runtimeID is the ID of the instance's runtime in the Provisioner, or empty.
	runtimeID string
}

func (b bundleSubject) text() string {
	switch {
	case b.operationID != "":
		return "operation " + b.operationID
	case b.instanceID != "":
		return "instance " + b.instanceID
	default:
		return ""
	}
}

// resolve returns the instance and the operation that the flags name. If one of them does not exist, resolve returns an error,
// because the user needs to correct the flags. If the broker does not respond, resolve uses the values of the flags as IDs, and the
// manifest lists the missing files.
func (b *bundleCollector) resolve(ctx context.Context, given bundleRequest) (bundleSubject, error) {
	var subject bundleSubject

	switch {
	case given.operation != "":
		operation, _, err := b.client.Operation(ctx, given.operation)
		if answered(http.StatusNotFound)(err) {
			return subject, fmt.Errorf("reading operation %s: %w", given.operation, err)
		}

		subject = bundleSubject{operationID: given.operation, instanceID: operation.InstanceID}
	case given.instance != "":
		id, err := instanceID(ctx, b.client, given.instance)
		if is[*notFoundError](err) || is[*usageError](err) {
			return subject, err
		}

		subject.instanceID = cmp.Or(id, given.instance)
	}

	return subject, nil
}

// add adds a document to the service's folder. It returns false if the document could not be added.
func (b *bundleCollector) add(ctx context.Context, name, content string, get func(ctx context.Context) (any, error)) bool {
	return b.Add(ctx, b.folder+"/"+name, content, get)
}

// collect adds the result of a generated client method without parameters.
func collect[T any](ctx context.Context, b *bundleCollector, name, content string, call func(ctx context.Context) (T, error)) {
	b.add(ctx, name, content, func(ctx context.Context) (any, error) { return call(ctx) })
}

// general adds the version of ebctl and the checks of 'ebctl doctor'.
func (b *bundleCollector) general(ctx context.Context) {
	b.Add(ctx, "ebctl/version.json", "the version of ebctl", func(context.Context) (any, error) {
		return version{Version: b.session.Version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}, nil
	})
	b.Add(ctx, "ebctl/doctor.json", "the checks of 'ebctl doctor'", func(ctx context.Context) (any, error) { return b.session.diagnose(ctx) })
}

// shared adds the documents that both services have. If instanceID is not empty, the bundle contains only the audit entries of
// this instance.
func (b *bundleCollector) shared(ctx context.Context, instanceID string) {
	collect(ctx, b, "status.json", "the version, and the systems that the service calls", b.client.GetStatus)
	b.listed(ctx, "stuck.json", "stuck operations", operatorapi.ListOperationsParams{
		State: operatorapi.OperationStateInProgress, Stuck: true,
	}, bundleStuck)
	b.listed(ctx, "failed.json", "the newest failed operations", operatorapi.ListOperationsParams{State: operatorapi.OperationStateFailed}, bundleFailed)
	b.listed(ctx, "pending.json", "the newest pending operations", operatorapi.ListOperationsParams{State: operatorapi.OperationStatePending}, 0)
	collect(ctx, b, "configuration.json", "the configuration without secrets", b.client.GetConfiguration)
	collect(ctx, b, "processes.json", "the processes of all kinds of operations", b.client.ListProcesses)
	b.add(ctx, "audit.json", "the newest entries of the audit log", func(ctx context.Context) (any, error) {
		return b.client.ListAudit(ctx, operatorapi.ListAuditParams{InstanceID: instanceID, PageSize: bundleEntries})
	})
}

// broker adds the documents of the broker, and sets subject.runtimeID.
func (b *bundleCollector) broker(ctx context.Context, subject *bundleSubject) {
	b.subject(ctx, subject)
	b.shared(ctx, subject.instanceID)
	b.add(ctx, "events.json", "the newest events", func(ctx context.Context) (any, error) {
		return newestEvents(ctx, b.client, subject.instanceID)
	})
	collect(ctx, b, "catalog.json", "the catalog", b.client.GetCatalog)
	collect(ctx, b, "jobs.json", "the periodic jobs", b.client.ListJobs)
	collect(ctx, b, "cloudaccounts.json", "the accounts of the pool", b.client.ListCloudAccounts)
	b.add(ctx, "leftovers.json", "what deletions could not remove", func(ctx context.Context) (any, error) {
		return b.client.ListRuntimes(ctx, operatorapi.ListRuntimesParams{Leftovers: true, PageSize: bundleEntries})
	})
	b.add(ctx, "orchestrations.json", "the newest orchestrations", func(ctx context.Context) (any, error) {
		return b.client.ListOrchestrations(ctx, operatorapi.ListOrchestrationsParams{PageSize: bundleEntries})
	})
	b.add(ctx, "quotas.json", "the quotas", func(ctx context.Context) (any, error) {
		return b.client.ListQuotas(ctx, operatorapi.ListQuotasParams{})
	})
}

// provisioner adds the documents of the Provisioner.
func (b *bundleCollector) provisioner(ctx context.Context, subject bundleSubject) {
	b.subject(ctx, &bundleSubject{instanceID: subject.runtimeID})
	b.shared(ctx, subject.runtimeID)
}

// subject adds the operation with subject.operationID, and the instance (of the broker) or runtime (of the Provisioner) with
// subject.instanceID and its newest operations. It skips objects whose ID is empty. It sets subject.runtimeID.
func (b *bundleCollector) subject(ctx context.Context, subject *bundleSubject) {
	if subject.operationID != "" {
		b.operation(ctx, subject.operationID)
	}

	if subject.instanceID == "" {
		return
	}

	b.add(ctx, b.session.noun()+".json", "the "+b.session.noun(), func(ctx context.Context) (any, error) {
		found, err := b.client.GetRuntime(ctx, subject.instanceID)
		subject.runtimeID = found.RuntimeID

		return found, err
	})
	b.listed(ctx, "operations.json", "its newest operations", operatorapi.ListOperationsParams{InstanceID: subject.instanceID}, bundleOperations)
}

// listed adds a page of operations. For the first operations on the page, it also adds separate documents with the timeline and the
// explanation; explained is their maximum number.
func (b *bundleCollector) listed(ctx context.Context, name, content string, params operatorapi.ListOperationsParams, explained int) {
	var list operatorapi.OperationList

	params.PageSize = bundleEntries
	b.add(ctx, name, content, func(ctx context.Context) (any, error) {
		var err error
		list, err = b.client.ListOperations(ctx, params)

		return list, err
	})

	for _, operation := range list.Data[:min(len(list.Data), explained)] {
		b.operation(ctx, operation.ID)
	}
}

// operation adds an operation with its timeline and its explanation, unless the bundle already contains them.
func (b *bundleCollector) operation(ctx context.Context, id string) {
	name := "operations/" + strings.NewReplacer("/", "_", "..", "_").Replace(id)
	if b.Has(b.folder + "/" + name + ".json") {
		return
	}

	var operation operatorapi.Operation

	found := b.add(ctx, name+".json", "an operation with its timeline", func(ctx context.Context) (any, error) {
		var err error
		operation, _, err = b.client.Operation(ctx, id)

		return operation, err
	})
	if !found {
		return
	}

	b.add(ctx, name+".txt", "the explanation of the operation", func(context.Context) (any, error) {
		var text strings.Builder

		err := explaintext.Text{Explanation: b.session.explanation(operation)}.WriteText(&text)

		return text.String(), err
	})
}

// newestEvents returns the newest events, or the newest events of an instance if instanceID is not empty. Pages start with the
// oldest event. Positions have no gaps, so for the events of all instances, the second request can read the last page directly.
func newestEvents(ctx context.Context, client *brokerclient.Client, instanceID string) (operatorapi.CloudEventList, error) {
	params := operatorapi.ListEventsParams{InstanceID: instanceID, PageSize: eventPage}

	list, err := client.ListEvents(ctx, params)
	if err != nil || !list.More {
		return list, err
	}

	if instanceID == "" {
		params.After = list.Last - eventPage

		return client.ListEvents(ctx, params)
	}

	newest := list.Data

	for list.More {
		params.After = list.After
		if list, err = client.ListEvents(ctx, params); err != nil {
			return list, err
		}

		newest = append(newest, list.Data...)
		newest = slices.Clone(newest[max(0, len(newest)-eventPage):])
	}

	list.Data, list.Count = newest, len(newest)

	return list, nil
}

// errNoStatusAddress explains why metrics are missing.
var errNoStatusAddress = errors.New("no --status-address was given")

// status adds the metrics and the health of each replica. timeout limits each request.
func (b *bundleCollector) status(ctx context.Context, addresses []statusAddress, timeout time.Duration) {
	if len(addresses) == 0 {
		b.Miss("metrics.txt", "the metrics and the health of the services", errNoStatusAddress.Error())
	}

	for _, address := range addresses {
		for _, file := range []struct{ path, name, content string }{
			{"/healthz", "healthz.txt", "whether the process runs"},
			{"/readyz", "readyz.txt", "whether the service can serve requests"},
			{"/metrics", "metrics.txt", "the metrics"},
		} {
			b.Add(ctx, address.folder+"/"+file.name, file.content, func(ctx context.Context) (any, error) {
				return brokerclient.Text(ctx, address.url+file.path, timeout)
			})
		}
	}
}
