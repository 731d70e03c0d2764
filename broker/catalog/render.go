package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pivotal-cf/brokerapi/v10/domain"
)

// pollMargin is added to the maximum duration of an operation, because an operation may wait for earlier ones.
// Platforms poll for the sum of the two; after that, they stop and report a failure.
const pollMargin = time.Hour

// publishedPlan is brokerapi's plan type, extended by binding_rotatable, a field that brokerapi lacks.
type publishedPlan struct {
	domain.ServicePlan

	BindingRotatable bool `json:"binding_rotatable"`
}

// publishedService is brokerapi's service type with plans of type publishedPlan.
type publishedService struct {
	domain.Service

	Plans []publishedPlan `json:"plans"`
}

// render encodes the catalog and computes its entity tag, a checksum of the body. Files with the same meaning
// result in the same tag on every replica.
func (c *content) render(options Options) error {
	binding, err := bindingForm()
	if err != nil {
		return err
	}

	changeable := func(plan *Plan) bool {
		return plan.offered && slices.ContainsFunc(c.plans, func(target *Plan) bool { return target.ID != plan.ID && plan.MayBecome(target) })
	}

	service := publishedService{
		Service: domain.Service{
			ID:                   c.service.ID,
			Name:                 c.service.Name,
			Description:          c.service.Description,
			Bindable:             true,
			InstancesRetrievable: true,
			BindingsRetrievable:  true,
			AllowContextUpdates:  true,
			PlanUpdatable:        slices.ContainsFunc(c.plans, changeable), // Service Catalog reads only this field, not the fields of the plans
			Tags:                 c.service.Tags,
			Metadata: &domain.ServiceMetadata{
				DisplayName:         c.service.DisplayName,
				ImageUrl:            c.service.ImageURL,
				LongDescription:     c.service.LongDescription,
				ProviderDisplayName: c.service.ProviderDisplayName,
				DocumentationUrl:    c.service.DocumentationURL,
				SupportUrl:          c.service.SupportURL,
			},
		},
		Plans: []publishedPlan{},
	}

	for _, plan := range c.plans {
		if plan.offered {
			service.Plans = append(service.Plans, plan.render(options, binding, changeable(plan)))
		}
	}

	body, err := json.Marshal(map[string]any{"services": []any{service}})
	if err != nil {
		return fmt.Errorf("encoding the catalog: %w", err)
	}

	sum := sha256.Sum256(body)
	c.body, c.etag = body, `"`+hex.EncodeToString(sum[:16])+`"`

	return nil
}

// render returns the plan as platforms see it. The binding form is the same for all plans. changeable reports whether instances of
// the plan can be changed to another plan.
func (p *Plan) render(options Options, binding form, changeable bool) publishedPlan {
	metadata := &domain.ServicePlanMetadata{DisplayName: p.DisplayName, Bullets: p.bullets()}
	for _, cost := range p.Costs {
		metadata.Costs = append(metadata.Costs, domain.ServicePlanCost(cost))
	}

	return publishedPlan{
		BindingRotatable: !p.OwnCluster,
		ServicePlan: domain.ServicePlan{
			ID:            p.ID,
			Name:          p.Name,
			Description:   p.Description,
			Free:          new(p.Free),
			Bindable:      new(!p.OwnCluster),
			PlanUpdatable: new(changeable),
			Metadata:      metadata,
			Schemas: &domain.ServiceSchemas{
				Instance: domain.ServiceInstanceSchema{
					Create: domain.Schema{Parameters: p.create.schema},
					Update: domain.Schema{Parameters: p.update.schema},
				},
				Binding: domain.ServiceBindingSchema{Create: domain.Schema{Parameters: binding.schema}},
			},
			MaximumPollingDuration: new(int((options.OperationTimeout + pollMargin) / time.Second)),
			MaintenanceInfo: &domain.MaintenanceInfo{
				Version: p.Maintenance.Version, Description: p.Maintenance.Description,
			},
		},
	}
}
