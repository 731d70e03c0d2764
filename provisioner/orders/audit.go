package orders

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// Recorder records actions that are not operations, such as issuing a kubeconfig. The entry of an operation is stored by the
// transaction that accepts the operation.
type Recorder interface {
	// RecordAlone stores the entry in its own transaction. If it fails, the action must not happen.
	RecordAlone(ctx context.Context, entry auditlog.Entry) error
	// Record stores the entry in the caller's transaction.
	Record(ctx context.Context, tx storage.Tx, entry auditlog.Entry) error
}

// audited adds the actor, the trace and the audit entry to a new operation. The entry lists the fields that the operation
// changes, with their values before and after it. A creation has no values before it, and a removal has no values after it.
func (s *Service) audited(ctx context.Context, tx storage.Tx, accepted process.New, runtime runtimes.Runtime,
) (process.New, error) {
	entry := auditlog.Entry{By: audit.ActorOf(ctx)}

	wanted, err := auditFields(runtime)
	if err != nil {
		return accepted, err
	}

	switch {
	case operation.Provisions(accepted.Kind):
		entry.After = wanted
	case operation.Deprovisions(accepted.Kind):
		entry.Before = wanted
	default:
		row, err := s.Runtimes.Get(ctx, tx, runtime.ID)
		if err != nil {
			return accepted, fmt.Errorf("reading runtime %s for the audit log: %w", runtime.ID, err)
		}

		present, err := auditFields(row)
		if err != nil {
			return accepted, err
		}

		entry.Before, entry.After = auditlog.Difference(present, wanted)
	}

	accepted.OrderedBy, accepted.Trace = entry.By.Name(), tracing.Traceparent(ctx)
	accepted.Audit, err = entry.Encode()

	return accepted, err
}

// auditFields returns the fields of a runtime that the audit log may contain in plaintext. A new field must contain neither
// secrets nor personal data.
func auditFields(runtime runtimes.Runtime) (auditlog.Fields, error) {
	order, err := operation.OrderOf(runtime)
	if err != nil {
		return nil, err
	}

	fields := auditlog.Fields{"cluster": runtime.ShootName, "tenant": runtime.Tenant, "subAccount": runtime.SubAccount}

	if order.ClusterConfig == nil || order.ClusterConfig.GardenerConfig == nil {
		return fields, nil
	}

	cluster := order.ClusterConfig.GardenerConfig
	fields["provider"], fields["region"] = cluster.Provider, cluster.Region
	fields["kubernetesVersion"], fields["machineType"] = cluster.KubernetesVersion, cluster.MachineType
	fields["autoScalerMin"], fields["autoScalerMax"] = cluster.AutoScalerMin, cluster.AutoScalerMax
	fields["administrators"] = fingerprints(runtime.ID, order.ClusterConfig.Administrators)

	if order.KymaConfig != nil {
		fields["kymaVersion"] = order.KymaConfig.Version
	}

	return fields, nil
}

// fingerprints returns a short hash of each administrator. Names are personal data: the runtime's row stores them sealed, but
// the audit log is plaintext. The hash covers the ID of the runtime, so that equal names in two runtimes cannot be linked.
// docs/operator/audit.md describes how to search for a person.
func fingerprints(runtimeID string, names []string) []string {
	var prints []string

	for _, name := range names {
		hash := sha256.Sum256([]byte(runtimeID + "\x00" + name))
		prints = append(prints, hex.EncodeToString(hash[:8]))
	}

	return prints
}

// recordKubeconfig records that an admin kubeconfig is issued. If it fails, the caller must not return the kubeconfig, because
// each issued kubeconfig needs a record.
func (s *Service) recordKubeconfig(ctx context.Context, runtime runtimes.Runtime) error {
	err := s.Recorder.RecordAlone(ctx, auditlog.Entry{
		Action: auditlog.ActionAdminKubeconfig, InstanceID: runtime.ID, Status: http.StatusOK,
		After: auditlog.Fields{"cluster": runtime.ShootName, "tenant": runtime.Tenant},
	})

	return unavailable(err)
}
