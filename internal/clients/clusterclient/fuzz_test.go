package clusterclient_test

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// FuzzKubeconfig checks arbitrary kubeconfigs of tenants. An error must be short and must not quote the kubeconfig; an accepted
// kubeconfig names an https address.
func FuzzKubeconfig(f *testing.F) {
	const valid = `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"https://api.example.com"}}],` +
		`"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{"token":"t"}}]}`

	for _, seed := range []string{
		valid, "", "a: &a [*a]", "{", strings.Repeat("[", 1000), strings.Replace(valid, "https", "http", 1),
		strings.Replace(valid, `"token":"t"`, `"exec":{"command":"secret-command"}`, 1), strings.Replace(valid, `"token":"t"`, `"tokenFile":"/etc/passwd"`, 1),
		strings.Replace(valid, `"server"`, `"proxy-url":"http://p","server"`, 1),
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, kubeconfig string) {
		err := clusterclient.Check(secret.String(kubeconfig))
		if err == nil && !strings.Contains(strings.ToLower(kubeconfig), "https") && !strings.Contains(kubeconfig, `\`) {
			t.Error("a kubeconfig without https was accepted")
		}

		if err != nil && (len(err.Error()) > 300 || strings.Contains(err.Error(), "secret-command")) {
			t.Errorf("the error is long or quotes the kubeconfig: %v", err)
		}
	})
}
