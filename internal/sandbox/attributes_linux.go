package sandbox

import "syscall"

// attributes returns the attributes for the garden and bundle provisioner processes. Each has its own process group, so that
// Ctrl-C reaches only the sandbox. If the sandbox dies, the kernel stops these processes.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
