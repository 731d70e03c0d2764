package environment

import (
	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// ServiceManager contains a tenant's credentials for SAP Service Manager. Platforms send them in the sm_operator_credentials
// field of the context, and the SAP BTP service operator in the runtime uses them. The JSON form contains secrets, so it must be
// stored only in encrypted columns.
type ServiceManager struct {
	ClientID     secret.Stored `json:"clientID"`
	ClientSecret secret.Stored `json:"clientSecret"`
	// URL is the URL of Service Manager. TokenURL is the URL of the endpoint that issues tokens for Service Manager.
	URL      string `json:"url"`
	TokenURL string `json:"tokenURL"`
}

// serviceManagerClusters is the UUID namespace of the IDs that ServiceManagerClusterID returns. It never changes.
var serviceManagerClusters = uuid.MustParse("6d1d1d0e-6a0b-4f0b-8f5c-2b6f1c0a9e77") //nolint:gochecknoglobals // a constant

// ServiceManagerClusterID returns the ID under which the runtime of the instance registers with Service Manager. Service Manager
// stores the ID with each service instance that the runtime creates, so the ID must stay the same when the credentials are
// rotated.
func (i Instance) ServiceManagerClusterID() string {
	return uuid.NewSHA1(serviceManagerClusters, []byte(i.ID+"/"+i.ShootName)).String()
}

// btpOperator is the Kyma component that contains the SAP BTP service operator.
const btpOperator = "btp-operator"

// OverrideServiceManager sets the values of the btp-operator component in the Kyma installation. It does nothing if there are no
// credentials, if there is no installation, or if the installation lacks the component. The component's Helm chart defines the
// keys.
func (i Instance) OverrideServiceManager() {
	credentials, kyma := i.Request.Cluster.ServiceManager, i.Request.Cluster.Kyma
	if credentials == nil || kyma == nil || kyma.Installation == nil {
		return
	}

	kyma.Installation.Set(btpOperator,
		KymaEntry{Key: "manager.secret.clientid", Value: credentials.ClientID.Reveal(), Secret: true},
		KymaEntry{Key: "manager.secret.clientsecret", Value: credentials.ClientSecret.Reveal(), Secret: true},
		KymaEntry{Key: "manager.secret.url", Value: secret.String(credentials.URL)},
		KymaEntry{Key: "manager.secret.sm_url", Value: secret.String(credentials.URL)},
		KymaEntry{Key: "manager.secret.tokenurl", Value: secret.String(credentials.TokenURL)},
		KymaEntry{Key: "cluster.id", Value: secret.String(i.ServiceManagerClusterID())},
	)
}
