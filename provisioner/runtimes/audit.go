package runtimes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// Trail is where is written down what is no operation.
type Trail interface {
	RecordAlone(ctx context.Context, entry auditlog.Entry) error
}

// ordered keeps with a new operation who orders it, what it changes, and the trace that it belongs to. There is nothing before a creation
// and nothing after a removal; their kinds, with Kyma and without, begin alike.
func (s *Service) ordered(ctx context.Context, tx storage.Tx, accepted process.New, runtime runtimes.Runtime) (process.New, error) {
	entry := auditlog.Entry{By: audit.ActorOf(ctx)}

	wanted, err := shown(runtime)
	if err != nil {
		return accepted, err
	}

	switch {
	case strings.HasPrefix(accepted.Kind, "Provision"):
		entry.After = wanted
	case strings.HasPrefix(accepted.Kind, "Deprovision"):
		entry.Before = wanted
	default:
		row, err := s.Runtimes.Get(ctx, tx, runtime.ID)
		if err != nil {
			return accepted, fmt.Errorf("reading runtime %s for the audit trail: %w", runtime.ID, err)
		}

		is, err := shown(row)
		if err != nil {
			return accepted, err
		}

		entry.Before, entry.After = auditlog.Difference(is, wanted)
	}

	accepted.OrderedBy, accepted.Trace = entry.By.Name(), tracing.Carry(ctx)
	accepted.Audit, err = entry.Encode()

	return accepted, err
}

// shown is what may be told of a runtime.
func shown(runtime runtimes.Runtime) (auditlog.Fields, error) {
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

// fingerprints tell administrators apart. Who they are is personal and stands sealed with the runtime; the trail is kept in clear. See
// docs/operator/audit.md for how to find out whether somebody is among them.
func fingerprints(runtimeID string, names []string) []string {
	var prints []string

	for _, name := range names {
		hash := sha256.Sum256([]byte(runtimeID + "\x00" + name))
		prints = append(prints, hex.EncodeToString(hash[:8]))
	}

	return prints
}

// handedOut writes down that a kubeconfig with every right is handed out. None is that could not be written down.
func (s *Service) handedOut(ctx context.Context, runtime runtimes.Runtime) error {
	err := s.Trail.RecordAlone(ctx, auditlog.Entry{
		Action: auditlog.ActionAdminKubeconfig, InstanceID: runtime.ID, Status: http.StatusOK,
		After: auditlog.Fields{"cluster": runtime.ShootName, "tenant": runtime.Tenant},
	})

	return unavailable(err)
}
