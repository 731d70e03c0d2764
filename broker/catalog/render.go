package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pivotal-cf/brokerapi/v10/domain"
)

// patience is how much longer than an operation may take a platform polls it: for its turn to come, and for its end to be told.
const patience = time.Hour

// plan is the library's form with what it lacks.
type plan struct {
	domain.ServicePlan

	BindingRotatable bool `json:"binding_rotatable"`
}

// service is the library's form with such plans.
type service struct {
	domain.Service

	Plans []plan `json:"plans"`
}

// render encodes the catalog once.
func (c *content) render(options Options) error {
	binding, err := bindingForm()
	if err != nil {
		return err
	}

	service := service{
		Service: domain.Service{
			ID:                   c.service.ID,
			Name:                 c.service.Name,
			Description:          c.service.Description,
			Bindable:             true,
			InstancesRetrievable: true,
			BindingsRetrievable:  true,
			AllowContextUpdates:  true,
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
		Plans: []plan{},
	}

	for _, plan := range c.plans {
		if plan.offered {
			service.Plans = append(service.Plans, plan.render(options, binding))
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

func (p *Plan) render(options Options, binding form) plan {
	metadata := &domain.ServicePlanMetadata{DisplayName: p.DisplayName, Bullets: p.Bullets}
	for _, cost := range p.Costs {
		metadata.Costs = append(metadata.Costs, domain.ServicePlanCost(cost))
	}

	return plan{
		BindingRotatable: !p.OwnCluster,
		ServicePlan: domain.ServicePlan{
			ID:            p.ID,
			Name:          p.Name,
			Description:   p.Description,
			Free:          new(p.Free),
			Bindable:      new(!p.OwnCluster),
			PlanUpdatable: new(len(p.BecomesPlans) > 0),
			Metadata:      metadata,
			Schemas: &domain.ServiceSchemas{
				Instance: domain.ServiceInstanceSchema{
					Create: domain.Schema{Parameters: p.create.schema},
					Update: domain.Schema{Parameters: p.update.schema},
				},
				Binding: domain.ServiceBindingSchema{Create: domain.Schema{Parameters: binding.schema}},
			},
			MaximumPollingDuration: new(int((options.OperationTimeout + patience) / time.Second)),
			MaintenanceInfo: &domain.MaintenanceInfo{
				Version: p.Maintenance.Version, Description: p.Maintenance.Description,
			},
		},
	}
}
