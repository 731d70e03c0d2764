package adopt

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage/takeover"
)

// formerParameters is the JSON in the provisioning_parameters column. Context and Parameters contain the fields that the platform
// sent, and null for all other fields.
type formerParameters struct {
	Context        map[string]any `json:"ers_context"`
	Parameters     map[string]any `json:"parameters"`
	PlatformRegion string         `json:"platform_region"`
}

// serviceManager contains the encrypted Service Manager credentials in the context.
type serviceManager struct {
	ClientID     string `json:"clientid"`
	ClientSecret string `json:"clientsecret"`
	URL          string `json:"sm_url"`
	TokenURL     string `json:"url"`
}

// The names of fields in the JSON that KEB stored.
const (
	fieldServiceManager = "sm_operator_credentials"
	fieldKubeconfig     = "kubeconfig"
	fieldTargetSecret   = "targetSecret"
	fieldLicenceType    = "licence_type"
)

// parse decodes the parameters of an instance and drops null values.
func parse(text string) (formerParameters, error) {
	var found formerParameters
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		return found, fmt.Errorf("decoding the provisioning_parameters column: %w", err)
	}

	found.Context, found.Parameters = withoutNull(found.Context), withoutNull(found.Parameters)

	return found, nil
}

// withoutNull removes the fields that the platform did not send, for which KEB stored null.
func withoutNull(object map[string]any) map[string]any {
	kept := map[string]any{}

	for name, value := range object {
		if inner, is := value.(map[string]any); is {
			value = withoutNull(inner)
		}

		if value != nil {
			kept[name] = value
		}
	}

	return kept
}

// text returns the value of a string field, or an empty string if there is no such field.
func text(object map[string]any, name string) string {
	value, _ := object[name].(string)

	return value
}

// request returns the instance's request without the cluster, and the Service Manager credentials, which are nil if there are none.
// The request omits the target secret and the licence type, because KEB added them to the user's parameters.
func (p formerParameters) request(cipher *takeover.Cipher) (environment.Request, *environment.ServiceManager, error) {
	credentials, err := p.credentials(cipher)
	if err != nil {
		return environment.Request{}, nil, err
	}

	delete(p.Context, fieldServiceManager)
	delete(p.Parameters, fieldTargetSecret)
	delete(p.Parameters, fieldLicenceType)

	if err := p.decryptKubeconfig(cipher); err != nil {
		return environment.Request{}, nil, err
	}

	request := environment.Request{Adopted: true, User: strings.ToLower(text(p.Context, "user_id"))}
	if request.Context, err = json.Marshal(p.Context); err != nil {
		return request, nil, fmt.Errorf("encoding the context: %w", err)
	}

	if request.Parameters, err = json.Marshal(p.Parameters); err != nil {
		return request, nil, fmt.Errorf("encoding the parameters: %w", err)
	}

	return request, credentials, nil
}

// credentials decrypts the Service Manager credentials. It returns nil if there are none.
func (p formerParameters) credentials(cipher *takeover.Cipher) (*environment.ServiceManager, error) {
	encoded, err := json.Marshal(p.Context[fieldServiceManager])
	if err != nil {
		return nil, fmt.Errorf("encoding the Service Manager credentials: %w", err)
	}

	var stored serviceManager
	if err := json.Unmarshal(encoded, &stored); err != nil || stored.ClientID == "" {
		return nil, nil //nolint:nilerr // The field has another form or is missing.
	}

	id, err := cipher.Decrypt(stored.ClientID)
	if err != nil {
		return nil, fmt.Errorf("decrypting the Service Manager credentials: %w", err)
	}

	password, err := cipher.Decrypt(stored.ClientSecret)
	if err != nil {
		return nil, fmt.Errorf("decrypting the Service Manager credentials: %w", err)
	}

	return &environment.ServiceManager{
		ClientID: secret.Stored(id), ClientSecret: secret.Stored(password), URL: stored.URL, TokenURL: stored.TokenURL,
	}, nil
}

// decryptKubeconfig decrypts the kubeconfig of a cluster that the tenant brings, and encodes it in base64, as platforms send it.
// Old rows contain it in plain text.
func (p formerParameters) decryptKubeconfig(cipher *takeover.Cipher) error {
	kubeconfig := text(p.Parameters, fieldKubeconfig)
	if kubeconfig == "" {
		return nil
	}

	if !isKubeconfig(kubeconfig) {
		plain, err := cipher.Decrypt(kubeconfig)
		if err != nil {
			return fmt.Errorf("decrypting the kubeconfig: %w", err)
		}

		kubeconfig = plain.Reveal()
	}

	if isKubeconfig(kubeconfig) {
		kubeconfig = base64.StdEncoding.EncodeToString([]byte(kubeconfig))
	}

	p.Parameters[fieldKubeconfig] = kubeconfig

	return nil
}

// isKubeconfig reports whether the string is a plain kubeconfig, which is neither encrypted nor encoded in base64.
func isKubeconfig(text string) bool { return strings.Contains(text, "apiVersion") }
