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

// Recorder records actions that are no operations. Operations carry their entry themselves, and the transaction that accepts one
// stores it.
type Recorder interface {
	RecordAlone(ctx context.Context, entry auditlog.Entry) error
}

// audited adds to a new operation who orders it, what it changes, and its trace. A creation has no fields before it, a removal
// none after it.
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

	accepted.OrderedBy, accepted.Trace = entry.By.Name(), tracing.Carry(ctx)
	accepted.Audit, err = entry.Encode()

	return accepted, err
}

// auditFields returns the fields of a runtime that the audit log may contain in clear.
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

// fingerprints returns a short hash of each administrator. Names are personal data and sealed with the runtime; the audit log is
// in clear. docs/operator/audit.md shows how to look for a person.
func fingerprints(runtimeID string, names []string) []string {
	var prints []string

	for _, name := range names {
		hash := sha256.Sum256([]byte(runtimeID + "\x00" + name))
		prints = append(prints, hex.EncodeToString(hash[:8]))
	}

	return prints
}

// recordKubeconfig records that an admin kubeconfig is issued. Issuing fails if recording fails.
func (s *Service) recordKubeconfig(ctx context.Context, runtime runtimes.Runtime) error {
	err := s.Recorder.RecordAlone(ctx, auditlog.Entry{
		Action: auditlog.ActionAdminKubeconfig, InstanceID: runtime.ID, Status: http.StatusOK,
		After: auditlog.Fields{"cluster": runtime.ShootName, "tenant": runtime.Tenant},
	})

	return unavailable(err)
}
