package deployments

import "testing"

// FuzzKubeconfig parses arbitrary kubeconfigs. An accepted kubeconfig must not name a program or a file.
func FuzzKubeconfig(f *testing.F) {
	const rest = "clusters: [{name: c, cluster: {server: 'https://x'}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n"

	for _, seed := range []string{
		"", "{", "users: [{name: u, user: {token: t}}]\n" + rest, "users: [{name: u, user: {tokenFile: /etc/passwd}}]\n" + rest,
		"users: [{name: u, user: {exec: {command: /bin/true, apiVersion: client.authentication.k8s.io/v1}}}]\n" + rest,
		"users: [{name: u, user: {client-certificate: /c, client-key: /k}}]\n" + rest,
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, content []byte) {
		config, err := parseKubeconfig(content)
		if err != nil {
			return
		}

		if config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" || config.CAFile != "" ||
			config.CertFile != "" || config.KeyFile != "" || config.Host == "" {
			t.Errorf("%q is accepted", content)
		}
	})
}
