package broker

import (
	"context"
	"errors"
	"net/http"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
)

// The rules of a request that are none of its parameters.
const (
	ruleExists  = "exists"
	ruleQuota   = "quota"
	ruleOffered = "offered"
)

// verdict is what a creation would say, without its effect.
type verdict struct {
	Valid    bool                `json:"valid"`
	Errors   []catalog.Violation `json:"errors"`
	Resolved *settled            `json:"resolved,omitempty"`
	// Quota is left out where there is no limit.
	Quota *quota `json:"quota,omitempty"`
}

type quota struct {
	Limit int `json:"limit"`
	Left  int `json:"left"`
}

// settled is what the order comes to, under the names of the parameters where there are some.
type settled struct {
	Name              string            `json:"name"`
	Provider          string            `json:"provider,omitempty"`
	Region            string            `json:"region,omitempty"`
	KubernetesVersion string            `json:"kubernetesVersion,omitempty"`
	MachineType       string            `json:"machineType,omitempty"`
	VolumeSizeGB      int               `json:"volumeSizeGb,omitempty"`
	AutoScalerMin     int               `json:"autoScalerMin,omitempty"`
	AutoScalerMax     int               `json:"autoScalerMax,omitempty"`
	MaxSurge          *int              `json:"maxSurge,omitempty"`
	MaxUnavailable    *int              `json:"maxUnavailable,omitempty"`
	Zones             []string          `json:"zones,omitempty"`
	Purpose           string            `json:"purpose,omitempty"`
	Networking        *settledNetworks  `json:"networking,omitempty"`
	Administrators    []string          `json:"administrators,omitempty"`
	OIDC              *environment.OIDC `json:"oidc,omitempty"`
	EUAccess          bool              `json:"euAccess,omitempty"`
}

type settledNetworks struct {
	Nodes    string `json:"nodes"`
	Pods     string `json:"pods,omitempty"`
	Services string `json:"services,omitempty"`
}

// validate answers POST /v2/service_instances/{instance_id}/validate, which is no part of the protocol: the body is that of a creation,
// and the answer what that would say. Nothing is written.
func (a *api) validate(r *http.Request) (httpserver.Answer, error) {
	order, err := a.readOrder(r)
	if err != nil {
		return httpserver.Answer{}, err
	}

	order.acceptsDeferred = true // how the answer is to come is not the question

	said, err := a.judge(r.Context(), order)
	if err != nil {
		return httpserver.Answer{}, err
	}

	return httpserver.OK(said), nil
}

func (a *api) judge(ctx context.Context, order order) (verdict, error) {
	said := verdict{Errors: []catalog.Violation{}}

	_, acceptance, err := a.look(ctx, order)

	switch refusal := httpserver.RefusalOf(err); {
	case errors.Is(err, errOvertaken):
		return said, concurrent()
	case err != nil && refusal.Status >= http.StatusInternalServerError:
		return said, err
	case err != nil:
		said.Errors = append(said.Errors, catalog.Violation{Rule: ruleExists, Message: refusal.Description})
	}

	resolved, wrong := order.plan.Check(order.known())
	if len(wrong) == 0 {
		said.Resolved = a.settle(resolved)
	}

	if acceptance != nil { // an order that is repeated is held against what it came to
		said.Errors = append(said.Errors, wrong...)

		if !order.plan.Offered() {
			said.Errors = append(said.Errors, catalog.Violation{Field: "plan_id", Rule: ruleOffered, Message: textNotOffered})
		}
	}

	if err := a.countQuota(ctx, order, &said); err != nil {
		return said, err
	}

	said.Valid = len(said.Errors) == 0

	return said, nil
}

func (a *api) countQuota(ctx context.Context, order order, said *verdict) error {
	if !order.plan.OnePerAccount() {
		return nil
	}

	rival, err := a.rivalOf(ctx, a.DB.Reader(), order.plan, order.requester.tenant, order.instanceID)
	if err != nil {
		return err
	}

	said.Quota = &quota{Limit: 1, Left: 1}

	if rival != "" {
		said.Quota.Left = 0
		said.Errors = append(said.Errors, catalog.Violation{Field: "plan_id", Rule: ruleQuota, Message: quotaText(order.plan, rival)})
	}

	return nil
}

// settle shows what an order comes to. Of a cluster that the tenant brings there is no more than its name; ranges that Gardener will choose
// are not known.
func (a *api) settle(resolved catalog.Resolved) *settled {
	cluster := resolved.Cluster
	if cluster.Own != nil {
		return &settled{Name: resolved.Name}
	}

	networks := &settledNetworks{Nodes: cluster.NodesCIDR, Pods: cluster.PodsCIDR, Services: cluster.ServicesCIDR}
	if a.RangesLeftOpen != nil && a.RangesLeftOpen() {
		networks = &settledNetworks{Nodes: cluster.NodesCIDR}
	}

	return &settled{
		Name: resolved.Name, Provider: resolved.Provider, Region: resolved.Region, KubernetesVersion: cluster.KubernetesVersion,
		MachineType: cluster.MachineType, VolumeSizeGB: cluster.VolumeSizeGB,
		AutoScalerMin: cluster.AutoScalerMin, AutoScalerMax: cluster.AutoScalerMax,
		MaxSurge: &cluster.MaxSurge, MaxUnavailable: &cluster.MaxUnavailable, Zones: cluster.Zones, Purpose: cluster.Purpose,
		Networking:     networks,
		Administrators: cluster.Administrators, OIDC: cluster.OIDC, EUAccess: cluster.EUAccess,
	}
}
