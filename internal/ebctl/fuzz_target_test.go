package ebctl

import (
	"strings"
	"testing"
)

// FuzzTargetKubeconfig checks that the error about a kubeconfig never quotes its credentials.
func FuzzTargetKubeconfig(f *testing.F) {
	const secret = "hush-hush"

	f.Add("{contexts: [{name: a, context: {user: a}}], current-context: a, users: [{name: a, user: {token: " + secret + "}}]}")
	f.Add("{contexts: [{name: a, context: {user: a}}], current-context: a, users: [{name: a, user: {exec: {command: sh, args: [" + secret + "]}}}]}")
	f.Add("users: " + secret)
	f.Add("")

	f.Fuzz(func(t *testing.T, text string) {
		err := checkTargetKubeconfig("file", []byte(text))
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the error quotes the kubeconfig: %v", err)
		}
	})
}
