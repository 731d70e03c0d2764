// Package kubeconfig checks kubeconfigs from untrusted sources. Every program must use it before it passes one to client-go.
package kubeconfig

import clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

// RefersOutside reports whether the user of a kubeconfig names a program, a plug-in or a file. client-go would run the
// program or the plug-in, and read the file, in the calling process's environment.
func RefersOutside(user *clientcmdapi.AuthInfo) bool {
	return user.Exec != nil || user.AuthProvider != nil || user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != ""
}
