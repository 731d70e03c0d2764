//go:build !linux

package sandbox

import "syscall"

// attributes returns the attributes with which the garden is started: it gets a separate process group, so that Ctrl-C reaches
// only the sandbox.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
