//go:build !linux

package sandbox

import "syscall"

// attributes runs the garden in a separate process group, so that Ctrl-C reaches only the sandbox.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
