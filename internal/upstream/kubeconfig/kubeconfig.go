// Package kubeconfig checks kubeconfigs from untrusted sources. Every program must check such a kubeconfig before passing it to
// client-go.
package kubeconfig

import clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

// RefersOutside reports whether the user of a kubeconfig refers to an exec plugin, an auth provider or a file. client-go would
// run the plugin and read the file with the rights of the calling process.
func RefersOutside(user *clientcmdapi.AuthInfo) bool {
	return user.Exec != nil || user.AuthProvider != nil || user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != ""
}
