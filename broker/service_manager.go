package broker

import (
	"net/url"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// serviceManager returns the Service Manager credentials in b's sm_operator_credentials field, or nil if the field is absent or
// null. b must be the context of a request. serviceManager rejects incomplete credentials, because the runtime would otherwise
// get a Secret that the BTP operator cannot use.
func (b *body) serviceManager() *environment.ServiceManager {
	const field = "sm_operator_credentials"

	credentials := b.inner(field)
	if credentials.fields == nil {
		return nil
	}

	sent := &environment.ServiceManager{
		ClientID:     secret.Stored(credentials.required("clientid")),
		ClientSecret: secret.Stored(credentials.required("clientsecret")),
		URL:          credentials.address("sm_url"),
		TokenURL:     credentials.address("url"),
	}
	b.keep(credentials.err)

	return sent
}

// contextServiceManager returns the Service Manager credentials in the request's context, or nil if it contains none.
func (b *body) contextServiceManager() *environment.ServiceManager {
	context := b.inner("context")
	credentials := context.serviceManager()
	b.keep(context.err)

	return credentials
}

// address returns the https URL in a required field. It rejects any other value, including https URLs that contain credentials.
func (b *body) address(field string) string {
	text := b.required(field)

	parsed, err := url.Parse(text)
	if text != "" && (err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil) {
		b.refuse(field, "must be an https URL without credentials.")
	}

	return text
}
