package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"
)

// patience is how much longer than an operation may take a platform polls it: for its turn to come, and for its end to be told.
const patience = time.Hour

// render encodes the catalog once.
func (c *Catalog) render(options Options) error {
	service := domain.Service{
		ID:                   c.service.ID,
		Name:                 c.service.Name,
		Description:          c.service.Description,
		Bindable:             true,
		InstancesRetrievable: true,
		BindingsRetrievable:  true,
		Tags:                 c.service.Tags,
		PlanUpdatable:        false,
		Plans:                []domain.ServicePlan{},
		Metadata: &domain.ServiceMetadata{
			DisplayName:         c.service.DisplayName,
			ImageUrl:            c.service.ImageURL,
			LongDescription:     c.service.LongDescription,
			ProviderDisplayName: c.service.ProviderDisplayName,
			DocumentationUrl:    c.service.DocumentationURL,
			SupportUrl:          c.service.SupportURL,
		},
	}

	for _, plan := range c.plans {
		service.Plans = append(service.Plans, plan.render(options))
	}

	body, err := json.Marshal(apiresponses.CatalogResponse{Services: []domain.Service{service}})
	if err != nil {
		return fmt.Errorf("encoding the catalog: %w", err)
	}

	sum := sha256.Sum256(body)
	c.body, c.etag = body, `"`+hex.EncodeToString(sum[:16])+`"`

	return nil
}

func (p *Plan) render(options Options) domain.ServicePlan {
	return domain.ServicePlan{
		ID:          p.ID,
		Name:        p.Name,
		Description: p.Description,
		Free:        new(p.Free),
		Metadata:    &domain.ServicePlanMetadata{DisplayName: p.DisplayName, Bullets: p.Bullets},
		Schemas: &domain.ServiceSchemas{
			Instance: domain.ServiceInstanceSchema{
				Create: domain.Schema{Parameters: p.createSchema()},
				Update: domain.Schema{Parameters: nothing()},
			},
			Binding: domain.ServiceBindingSchema{Create: domain.Schema{Parameters: bindingSchema()}},
		},
		MaximumPollingDuration: new(int((options.OperationTimeout + patience) / time.Second)),
		MaintenanceInfo: &domain.MaintenanceInfo{
			Version: p.Maintenance.Version, Description: p.Maintenance.Description,
		},
	}
}
