// Package kubeconfig has the check that all programs make of kubeconfigs that others wrote, before client-go uses them.
package kubeconfig

import clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

// RefersOutside reports whether the user of a kubeconfig names a program, a plug-in or a file. client-go would run the program, and read the file, on
// the machine of the caller.
func RefersOutside(user *clientcmdapi.AuthInfo) bool {
	return user.Exec != nil || user.AuthProvider != nil || user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != ""
}
